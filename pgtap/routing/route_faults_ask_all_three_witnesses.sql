begin;
\ir helpers.psql
select plan(19);

select from pg_temp.status('Sound', pg_temp.shape(pg_temp.step('a'), pg_temp.step('B')), 'step');
select from pg_temp.status('plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b')));
select from pg_temp.status('bare', '{"steps": []}');

create function pg_temp.faults_after(change text, flow_slug text, step_slug text default null)
returns setof text
language sql
as $$
  select pg_temp.after(
    faults_after.change,
    format(
      $question$
        select format('%%s: %%s', coalesce(step_slug, 'the flow'), fault)
        from pgflow.route_faults(%L, %L)
      $question$,
      faults_after.flow_slug,
      faults_after.step_slug
    )
  )
$$;

select is_empty($$ select * from pgflow.route_faults('Sound') $$, 'a step-mode flow as compiled has no faults');
select is_empty($$ select * from pgflow.route_faults('plain') $$, 'nor has a flow-mode flow');
select is_empty($$ select * from pgflow.route_faults('bare') $$, 'nor has one without steps');
select is_empty($$ select * from pgflow.route_faults('unknown') $$, 'an unknown flow has none either');

-- The derived route.

create temporary table edit on commit drop as
select $$ update pgflow.steps set queue_name = 'sound__a' where flow_slug = 'Sound' and step_slug = 'B' $$ as route;

select results_eq(
  $$ select pg_temp.faults_after(route, 'Sound') from edit $$,
  $$
    values
    ('B: Step "B" (index 1): the persisted route is "sound__a", the derived one is "sound__b".'),
    ('B: Queue "sound__a" belongs to step "a" of flow "Sound".')
  $$,
  'a route that was edited by hand differs from the derived one, and its queue from its owner'
);
select results_eq(
  $$
    select pg_temp.after(route, 'select concat_ws('' '', step_index, persisted, derived) from pgflow.route_faults(''Sound'')')
    from edit
  $$,
  $$ values ('1 sound__a sound__b'), ('1 sound__a sound__b') $$,
  'a fault has the index of its step and both routes'
);
select is_empty(
  $$ select pg_temp.faults_after(route, 'Sound', 'a') from edit $$,
  'when one step is asked for, the faults of others are left out'
);
select isnt_empty(
  $$ select pg_temp.faults_after(route, 'Sound', 'B') from edit $$,
  'and its own are there'
);
select results_eq(
  $$
    select pg_temp.faults_after(
      'update pgflow.steps set queue_name = ''bare'' where flow_slug = ''plain'' and step_slug = ''b''', 'plain'
    )
  $$,
  $$ values ('b: Step "b" (index 1): the persisted route is "bare", the derived one is "plain".') $$,
  'a flow-mode route that was edited by hand is found'
);

-- The owner row and the queue in PGMQ.

select results_eq(
  format('select pg_temp.faults_after(%L, %L)', damage.change, damage.flow_slug),
  format('values (%L)', damage.fault),
  damage.promise
)
from (
  values
  (
    'update pgflow.queues set step_slug = ''a'' where queue_name = ''sound__b''', 'Sound',
    'B: Queue "sound__b" belongs to step "a" of flow "Sound".', 'an owner row that names another step is found'
  ),
  (
    'update pgflow.queues set flow_slug = ''Sound'' where queue_name = ''plain''', 'plain',
    'the flow: Queue "plain" belongs to flow "Sound".', 'an owner row that names another flow is found'
  ),
  (
    'delete from pgflow.queues where queue_name = ''bare''', 'bare',
    'the flow: Queue "bare" has no owner row.', 'a missing owner row is found'
  ),
  (
    'select pgmq.drop_queue(''sound__a'')', 'Sound',
    'a: Queue "sound__a" is not listed by PGMQ.', 'a step''s queue that was dropped is found'
  ),
  (
    'select pgmq.drop_queue(''plain'')', 'plain',
    'the flow: Queue "plain" is not listed by PGMQ.',
    'a flow''s queue that was dropped is found once, not for every step'
  ),
  ('drop table pgmq.q_bare', 'bare', 'the flow: Table pgmq.q_bare is gone.', 'a missing table is found'),
  ('drop table pgmq.a_sound__b', 'Sound', 'B: Table pgmq.a_sound__b is gone.', 'a missing archive is found')
) as damage (change, flow_slug, fault, promise);
select matches(
  (select pg_temp.faults_after('select pg_temp.make_again(''sound__a'')', 'Sound')),
  '^a: Queue "sound__a" was made again: PGMQ says at .*, its owner row says at .*\.$',
  'a queue that somebody made again is found by the time it was made'
);
select is_empty(
  $$ select pg_temp.faults_after('update pgmq.meta set queue_name = upper(queue_name collate "C")', 'plain') $$,
  'in which case PGMQ lists a queue does not matter'
);

-- A step-mode flow whose steps were deleted by hand.

select is_empty(
  $$ select pg_temp.faults_after('delete from pgflow.steps', 'Sound') $$,
  'a flow that lost its steps has no routes to judge'
);

select * from finish();
rollback;
