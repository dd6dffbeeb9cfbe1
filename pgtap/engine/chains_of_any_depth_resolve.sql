begin;
\ir ../helpers.psql
select plan(23);

create function pg_temp.chain(steps int, first jsonb, following jsonb default '{}', is_map boolean default false)
returns jsonb
language sql
as $$
  select jsonb_agg(
    case when is_map then pg_temp.map('s' || n, case when n > 1 then 's' || n - 1 else '' end) else pg_temp.step('s' || n, case when n > 1 then 's' || n - 1 else '' end) end
    || case when n = 1 then first else following end
    order by n
  )
  from generate_series(1, steps) as n
$$;

-- Each step is skipped for a condition of its own.

select pg_temp.compile(
  'skips' || steps, 'flow', pg_temp.chain(steps, pg_temp.only_if('{"never": true}'), pg_temp.only_if('{"never": true}'))
)
from unnest(array[60, 200, 300]) as steps;
select results_eq(
  format($$ select status, remaining_steps, output from pgflow.start_flow(%L, '{}') $$, 'skips' || steps),
  $$ values ('completed', 0, '{}'::jsonb) $$,
  format('a chain of %s steps, all skipped by a condition', steps)
)
from unnest(array[60, 200, 300]) as steps;
select is(
  (select count(*) from pgflow.step_states where flow_slug = 'skips' || steps and skip_reason = 'condition_unmet'), steps::bigint,
  format('each of %s steps says so itself', steps)
)
from unnest(array[60, 200, 300]) as steps;

-- One cascade skips all of them.

select pg_temp.compile('cascade', 'flow', pg_temp.chain(300, pg_temp.only_if('{"never": true}', 'skip-cascade')));
select results_eq(
  $$ select status, remaining_steps, output from pgflow.start_flow('cascade', '{}') $$,
  $$ values ('completed', 0, '{}'::jsonb) $$,
  'a cascade over a chain of 300 steps'
);
select is(
  (select count(*) from pgflow.step_states where flow_slug = 'cascade' and skip_reason = 'dependency_skipped'), 299::bigint, 'reaches all the others'
);

-- Empty maps.

select pg_temp.compile('maps' || steps, case steps when 60 then 'step' else 'flow' end, pg_temp.chain(steps, '{}', '{}', true)) from unnest(array[60, 200, 300]) as steps;
select results_eq(
  format($$ select status, remaining_steps, output from pgflow.start_flow(%L, '[]') $$, 'maps' || steps),
  format($$ values ('completed', 0, '{"s%s": []}'::jsonb) $$, steps),
  format('a chain of %s empty maps', steps)
)
from unnest(array[60, 200, 300]) as steps;
select is(
  (select count(*) from pgflow.step_states where flow_slug = 'maps' || steps and status = 'completed' and output = '[]'), steps::bigint,
  format('all %s of them complete', steps)
)
from unnest(array[60, 200, 300]) as steps;

-- A skipped step, empty maps behind it, a step with work at the end.

select pg_temp.compile(
  'mixed', 'flow',
  pg_temp.chain(120, pg_temp.only_if('{"never": true}'), '{}', true) || jsonb_build_array(pg_temp.step('work', 's120'))
);
select pg_temp.start('mixed', 'mixed', '[1, 2]');
select is(pg_temp.run('mixed'), 'started, 1 left', 'a skip and 119 empty maps resolve to the one step that has work');
select results_eq(
  $$ select input from pg_temp.claim('mixed') $$, $$ values ('{"s120": []}'::jsonb) $$, 'which gets what the last of them gave'
);

-- The same depth, reached by a task that completes and by one that breaks.

select pg_temp.compile(
  'deep', 'flow',
  jsonb_build_array(
    pg_temp.step('s0', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip"}'), pg_temp.step('s1', 's0', pg_temp.only_if('{"s0": 1}'))
  )
  || (select jsonb_agg(pg_temp.step('s' || n, 's' || n - 1, pg_temp.only_if('{"never": true}')) order by n) from generate_series(2, 100) as n)
);
select pg_temp.start('deep', 'completes'), pg_temp.start('deep', 'breaks');
select count(*) from pg_temp.claim('deep', null, 2);
select status from pgflow.complete_task(pg_temp.id('completes'), 's0', 0, '2');
select status from pgflow.fail_task(pg_temp.id('breaks'), 's0', 0, 'x');
select is(pg_temp.run('completes'), 'completed, 0 left', 'a chain of 100 steps skipped after a completion');
select is(pg_temp.run('breaks'), 'completed, 0 left', 'and after a failure');
select is(
  (select count(*) from pgflow.step_states where run_id = pg_temp.id('breaks') and status = 'skipped'), 101::bigint, 'with every step skipped'
);

-- A broad and deep lattice: each step depends on all of the layer above.

select pg_temp.compile(
  'lattice', 'flow',
  (
    select jsonb_agg(
      pg_temp.step(
        format('l%s_%s', layer, place), case when layer > 1 then (select string_agg(format('l%s_%s', layer - 1, above), ',') from generate_series(1, 4) as above) else '' end,
        case when layer = 1 then pg_temp.only_if('{"never": true}', 'skip-cascade') else '{}' end
      )
      order by layer, place
    )
    from generate_series(1, 40) as layer
    cross join generate_series(1, 4) as place
  )
);
select results_eq(
  $$ select status, remaining_steps from pgflow.start_flow('lattice', '{}') $$,
  $$ values ('completed', 0) $$,
  'a cascade through a lattice with 4^39 paths'
);
select is((select count(*) from pgflow.step_states where flow_slug = 'lattice' and status = 'skipped'), 160::bigint, 'skips each step once');

select is_empty(
  $$
    select flow_slug, fault.*
    from pgflow.flows
    cross join lateral pg_temp.contradictions(flow_slug) as fault
  $$,
  'all of these are sound'
);
select is((select count(*) from pg_temp.messages('deep')) + (select count(*) from pg_temp.messages('cascade')), 0::bigint, 'no message is left');

select * from finish();
rollback;
