begin;
\ir helpers.psql
select plan(18);

select pg_temp.compile('A', 'step', jsonb_build_array(pg_temp.step('one'), pg_temp.step('two', 'one')));
select pg_temp.compile('b', 'flow', jsonb_build_array(pg_temp.step('one')));
select pg_temp.start('A', 'gone');
select pg_temp.start('b', 'kept');
select pg_temp.work('A', 'one');
select pgmq.create('bystander');
select from pgmq.send('bystander', '{}');
create temporary table before on commit drop as
select
  pg_temp.picture('b') as b,
  (pg_temp.flow('A')).generation as generation;

-- Slugs that name nothing.

select pg_temp.world() as world \gset
select lives_ok(
  format('select pgflow.delete_flow_and_data(%L)', slug),
  'deleting what is not there: ' || coalesce(to_json(slug)::text, 'null')
)
from unnest(array['a', 'B', 'unknown', 'bystander', 'A__one', 'a''; drop table pgflow.flows; --', null]) as slug;
select is(pg_temp.world(), :'world', 'deletes nothing');

-- A flow.

select lives_ok($$ select pgflow.delete_flow_and_data('A') $$, 'a flow with runs in flight is deleted');
select is_empty(
  $$
    select from pgflow.flows where flow_slug = 'A'
    union all
    select from pgflow.steps where flow_slug = 'A'
    union all
    select from pgflow.deps where flow_slug = 'A'
    union all
    select from pgflow.queues where flow_slug = 'A'
    union all
    select from pgflow.runs where flow_slug = 'A'
    union all
    select from pgflow.step_states where flow_slug = 'A'
    union all
    select from pgflow.step_tasks where flow_slug = 'A'
  $$,
  'nothing of it is left'
);
select is(
  pg_temp.pgmq_has('%'),
  'a_b, a_bystander, b (listed), bystander (listed), q_b, q_bystander',
  'its queues and archives are gone, those of others are there'
);
select is(pg_temp.picture('b'), (select b from before), 'the other flow is as it was');
select results_eq(
  $$ select distinct stop_reason from pgflow.workers where flow_slug = 'A' $$,
  $$ values ('Flow "A" was deleted.') $$,
  'its workers are told to stop'
);
select is(pg_temp.status('A', pg_temp.shape(pg_temp.step('one')), 'step'), 'compiled', 'the slug is free again');
select cmp_ok(
  (pg_temp.flow('A')).generation,
  '>',
  (select generation from before),
  'but its generation is a new one'
);

-- Spellings, pieces and strangers.

update pgmq.meta
set queue_name = 'B'
where queue_name = 'b';
insert into pgmq.meta (queue_name, is_partitioned, is_unlogged)
values ('b', false, false);
select from pgflow.delete_flow_and_data('b');
select is(
  pg_temp.pgmq_has('%'),
  'a__one (listed), a_a__one, a_bystander, bystander (listed), q_a__one, q_bystander',
  'a queue goes under every spelling that PGMQ lists'
);
drop table pgmq.q_a__one;
select from pgflow.delete_flow_and_data('A');
select is(
  pg_temp.pgmq_has('%'),
  'a_bystander, bystander (listed), q_bystander',
  'the rest of a queue that lost its table goes, too'
);
select from pgflow.create_flow('mine');
select pg_temp.make_again('mine');
select from pgflow.delete_flow_and_data('mine');
select is(
  pg_temp.pgmq_has('%mine%') || ', owned by ' || (select count(*) from pgflow.queues),
  'a_mine, mine (listed), q_mine, owned by 0',
  'a queue that somebody made again is given up, but not dropped'
);

select * from finish();
rollback;
