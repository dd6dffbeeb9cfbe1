begin;
\ir ../helpers.psql
select plan(29);

select pg_temp.compile(
  'Orders', 'step',
  jsonb_build_array(pg_temp.step('pick'), pg_temp.step('pack', 'pick'), pg_temp.step('bill'), pg_temp.step('ship', 'pack,bill'))
);
select pg_temp.compile('lists', 'step', jsonb_build_array(pg_temp.map('each'), pg_temp.step('also')));
select pg_temp.compile('nothing', 'flow', '[]');

-- A run.

select results_eq(
  $$
    select run_id, flow_slug, status, input, output, remaining_steps, completed_at, failed_at
    from pgflow.start_flow('Orders', '{"customer": "x"}', pg_temp.id('first'))
  $$,
  $$
    values (
      pg_temp.id('first'), 'Orders', 'started', '{"customer": "x"}'::jsonb, null::jsonb, 4,
      null::timestamptz, null::timestamptz
    )
  $$,
  'start_flow returns the row of the run, with the id that the caller chose'
);
select isnt(
  (select run_id from pgflow.start_flow('Orders', '{}')),
  (select run_id from pgflow.start_flow('Orders', '{}')),
  'without an id every run gets one of its own'
);
select results_eq(
  $$
    select state.step_slug, state.status, state.remaining_deps, state.initial_tasks, state.remaining_tasks, state.started_at is null
    from pgflow.step_states as state
    inner join pgflow.steps as step using (flow_slug, step_slug)
    where state.run_id = pg_temp.id('first')
    order by step.step_index
  $$,
  $$
    values
    ('pick', 'started', 0, 1, 1, false),
    ('pack', 'created', 1, 1, null::int, true),
    ('bill', 'started', 0, 1, 1, false),
    ('ship', 'created', 2, 1, null, true)
  $$,
  'every step has a state: those without dependencies are started, the others wait for all of theirs'
);
select results_eq(
  $$
    select step_slug, task_index, status, attempts_count, queue_name, started_at, completed_at, output
    from pgflow.step_tasks
    where run_id = pg_temp.id('first')
    order by step_slug
  $$,
  $$
    values
    ('bill', 0, 'queued', 0, 'orders__bill', null::timestamptz, null::timestamptz, null::jsonb),
    ('pick', 0, 'queued', 0, 'orders__pick', null, null, null)
  $$,
  'only started steps have tasks, queued on the queue of their step'
);
select results_eq(
  $$
    select message.queue_name, message.message
    from pg_temp.messages('Orders') as message
    inner join pgflow.step_tasks as task
      on task.queue_name = message.queue_name
      and task.message_id = message.msg_id
    where task.run_id = pg_temp.id('first')
    order by 1
  $$,
  $$
    select
      'orders__' || step_slug,
      jsonb_build_object('flow_slug', 'Orders', 'run_id', pg_temp.id('first'), 'step_slug', step_slug, 'task_index', 0)
    from (values ('bill'), ('pick')) as started (step_slug)
  $$,
  'each task has its message, which names flow, run, step and task and holds nothing else'
);
select pg_temp.is_sound('Orders', 'started runs are sound');

-- A root map.

select results_eq(
  $$ select status, remaining_steps from pgflow.start_flow('lists', '[7, null, {"a": 1}]', pg_temp.id('three')) $$,
  $$ values ('started', 2) $$,
  'a flow with a root map starts with an array'
);
select results_eq(
  $$ select step_slug, initial_tasks, remaining_tasks from pgflow.step_states where run_id = pg_temp.id('three') order by 1 $$,
  $$ values ('also', 1, 1), ('each', 3, 3) $$,
  'a root map has one task for each element, a single step one'
);

-- A flow without steps.

select results_eq(
  $$
    select status, remaining_steps, output, completed_at is not null
    from pgflow.start_flow('nothing', '{}')
  $$,
  $$ values ('completed', 0, '{}'::jsonb, true) $$,
  'a flow without steps completes at once with an empty output'
);

-- Refusals.

select pg_temp.picture('Orders') as orders, pg_temp.picture('lists') as lists \gset

select throws_ok(
  $$ select pgflow.start_flow('missing', '{}') $$,
  'PF018', 'Flow "missing" is not known.', 'an unknown flow is refused by name'
);
select throws_ok(
  $$ select pgflow.start_flow('orders', '{}') $$,
  'PF018', 'Flow "orders" is not known.', 'a slug in the wrong case is unknown'
);
select throws_ok(
  $$ select pgflow.start_flow(null, '{}') $$,
  'PF018', null, 'no slug at all is unknown'
);
select throws_ok(
  format('select pgflow.start_flow(%L, %L)', slug, '{}'),
  'PF018', format('Flow "%s" is not known.', slug), 'a hostile slug is data: ' || quote_literal(slug)
)
from unnest(
  array['Orders''; drop table pgflow.runs; --', 'Orders"', 'Orders%I', 'Orders\', e'Orders\n', 'Orders ']
) as slug;
select throws_ok(
  $$ select pgflow.start_flow('Orders', null) $$,
  'PF019', null, 'an input that is NULL is refused'
);
select lives_ok(
  $$ select pgflow.start_flow('nothing', 'null') $$,
  'the JSON value null is an input'
);
select throws_ok(
  $$ select pgflow.start_flow('lists', null) $$,
  'PF019', 'Flow lists has root map steps but input is NULL', 'a root map needs an input'
);
select throws_ok(
  format('select pgflow.start_flow(%L, %L)', 'lists', input),
  'PF019', format('Flow lists has root map steps but input is not an array (got %s)', kind),
  'a root map needs an array, not: ' || kind
)
from (
  values ('{"0": 1}', 'object'), ('"[]"', 'string'), ('3', 'number'), ('true', 'boolean'), ('null', 'null')
) as wrong (input, kind);
select throws_ok(
  $$ select pgflow.start_flow('Orders', '{}', pg_temp.id('first')) $$,
  '23505', null, 'the id of a run can be used once'
);

select is(pg_temp.picture('Orders'), :'orders', 'a refused start leaves no run, state, task or message behind');
select is(pg_temp.picture('lists'), :'lists', 'nor does one with the wrong input for a root map');

select * from finish();
rollback;
