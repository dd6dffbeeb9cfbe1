begin;
\ir helpers.psql
select plan(58);

create table public.canary (alive boolean);
create temporary table hostile (slug text) on commit drop;
insert into hostile values
('a''; drop table public.canary; --'),
('a"; drop table public.canary; --'),
('%I'),
('%s%L'),
('a\b'),
(e'a\nb'),
(e'a\n'),
('a '),
('$$; drop table public.canary; $$');
select pg_temp.world() as world \gset

select throws_ok(
  format('select pgflow.create_flow(%L)', slug),
  '23514', null, 'create_flow refuses ' || to_json(slug)
)
from hostile;
select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L)))', slug, 'a'),
  'PF008', null, 'ensure_flow_compiled refuses the flow ' || to_json(slug)
)
from hostile;
select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L)), false, %L)', 'f', slug, 'step'),
  'PF008', null, 'ensure_flow_compiled refuses the step ' || to_json(slug)
)
from hostile;
select throws_ok(
  format(
    'select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L, %L)), false, %L)',
    'f',
    'a',
    replace(slug, ',', ''),
    'step'
  ),
  'PF008', null, 'ensure_flow_compiled refuses the dependency ' || to_json(slug)
)
from hostile;
select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L)), true, %L)', 'f', 'a', slug),
  'PF019', null, 'ensure_flow_compiled refuses the mode ' || to_json(slug)
)
from hostile;
select lives_ok(
  format('select pgflow.delete_flow_and_data(%L)', slug), 'delete_flow_and_data finds no flow ' || to_json(slug)
)
from hostile;

select is(pg_temp.world(), :'world', 'nothing was made or changed');
select has_table('public', 'canary', 'the canary is alive');

-- Payloads that look like code.

select is(
  pg_temp.status(
    'f', pg_temp.shape(pg_temp.step('a', '', pg_temp.only_if('{"x'';drop table public.canary;--": "%I $$"}'))), 'step'
  ),
  'compiled', 'a pattern may hold anything'
);
select has_table('public', 'canary', 'the canary is still alive');

select * from finish();
rollback;
