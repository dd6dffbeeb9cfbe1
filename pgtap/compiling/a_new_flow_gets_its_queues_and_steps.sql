begin;
\ir helpers.psql
select plan(24);

create temporary table answer on commit drop as
select pgflow.ensure_flow_compiled(
  'Orders',
  '{
    "steps": [
      {"slug": "Pick", "stepType": "single", "dependencies": [], "whenUnmet": "fail", "whenExhausted": "skip-cascade",
       "requiredInputPattern": {"defined": true, "value": {"paid": true}},
       "forbiddenInputPattern": {"defined": false},
       "options": {"maxAttempts": 7, "baseDelay": 0, "timeout": 90, "startDelay": 5}},
      {"slug": "pack", "stepType": "map", "dependencies": ["Pick"]},
      {"slug": "ship",
      "dependencies": ["pack", "Pick", "pack"],
      "forbiddenInputPattern": {"defined": true,
      "value": {}}}
    ],
    "options": {"maxAttempts": 2, "baseDelay": 9, "timeout": 30}
  }',
  false,
  'step'
) as result;

select is(result ->> 'status', 'compiled', 'a new flow is compiled') from answer;
select is(result -> 'differences', '[]', 'it differs from nothing') from answer;
select is(result ->> 'queue_mode', 'step', 'the result tells the queue mode') from answer;
select is(
  result -> 'routes',
  '[
    {"step_slug": "Pick", "queue_name": "orders__pick"},
    {"step_slug": "pack", "queue_name": "orders__pack"},
    {"step_slug": "ship", "queue_name": "orders__ship"}
  ]',
  'and the routes in step order'
)
from answer;
select is(result -> 'uncovered', '["Pick", "pack", "ship"]', 'and the steps that nobody works on yet') from answer;
select bag_eq(
  $$ select jsonb_object_keys(result) from answer $$,
  $$ values ('status'), ('differences'), ('queue_mode'), ('routes'), ('uncovered') $$,
  'it tells nothing else'
);

select results_eq(
  $$ select flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows $$,
  $$ values ('Orders', 'step', 2, 9, 30) $$,
  'the flow has its mode and the options of the shape'
);
select results_eq(
  $$
    select step_index, step_slug, step_type, deps_count, queue_name, when_unmet, when_exhausted
    from pgflow.steps
    order by step_index
  $$,
  $$
    values
    (0, 'Pick', 'single', 0, 'orders__pick', 'fail', 'skip-cascade'),
    (1, 'pack', 'map', 1, 'orders__pack', 'skip', 'fail'),
    (2, 'ship', 'single', 2, 'orders__ship', 'skip', 'fail')
  $$,
  'the steps are in order, with routes, and defaults where the shape is silent'
);
select results_eq(
  $$
    select step_slug, opt_max_attempts, opt_base_delay, opt_timeout, opt_start_delay
    from pgflow.steps
    order by step_index
  $$,
  $$ values ('Pick', 7, 0, 90, 5), ('pack', null, null, null, null), ('ship', null, null, null, null) $$,
  'a step has its own options or inherits the flow''s'
);
select results_eq(
  $$ select step_slug, required_input_pattern, forbidden_input_pattern from pgflow.steps order by step_index $$,
  $$ values ('Pick', '{"paid": true}'::jsonb, null), ('pack', null, null), ('ship', null, '{}'::jsonb) $$,
  'patterns are kept where they are defined'
);
select results_eq(
  $$ select dep_slug, step_slug from pgflow.deps order by step_slug collate "C", dep_slug collate "C" $$,
  $$ values ('Pick', 'pack'), ('Pick', 'ship'), ('pack', 'ship') $$,
  'a dependency that is named twice is one'
);
select results_eq(
  $$ select queue_name, flow_slug, step_slug from pgflow.queues order by queue_name collate "C" $$,
  $$
    values
    ('orders__pack', 'Orders', 'pack'),
    ('orders__pick', 'Orders', 'Pick'),
    ('orders__ship', 'Orders', 'ship')
  $$,
  'each step owns its queue'
);
select is(
  pg_temp.pgmq_has('%'),
  'a_orders__pack, a_orders__pick, a_orders__ship, '
  'orders__pack (listed), orders__pick (listed), orders__ship (listed), '
  'q_orders__pack, q_orders__pick, q_orders__ship',
  'PGMQ has exactly these queues, and none for the flow as a whole'
);
select is_empty(
  $$
    select from pgflow.queues as owner
    left join pgmq.meta as meta on meta.queue_name = owner.queue_name
    where owner.physical_created_at is distinct from meta.created_at
  $$,
  'the owner rows know when the queues were made'
);
select is_empty($$ select * from pgflow.route_faults('Orders') $$, 'the flow is sound');

-- Flow mode.

select is(
  pg_temp.status('Plain', pg_temp.shape(pg_temp.step('a'), pg_temp.step('A', 'a'))),
  'compiled',
  'flow mode is the default'
);
select results_eq(
  $$ select step_slug, queue_name from pgflow.steps where flow_slug = 'Plain' order by step_index $$,
  $$ values ('a', 'plain'), ('A', 'plain') $$,
  'all its steps have the one route'
);
select results_eq(
  $$ select queue_name, step_slug from pgflow.queues where flow_slug = 'Plain' $$,
  $$ values ('plain', null::text) $$,
  'it owns one queue'
);
select results_eq(
  $$ select queue_mode, opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows where flow_slug = 'Plain' $$,
  $$ values ('flow', 3, 5, 60) $$,
  'without options it has the defaults'
);
select is(pg_temp.status('bare', '{"steps": []}'), 'compiled', 'a flow-mode flow without steps is compiled');
select is(pg_temp.pgmq_has('%bare%'), 'a_bare, bare (listed), q_bare', 'and has its queue');

-- Three arguments, as clients of pgflow 0.14 call.

select is(
  pgflow.ensure_flow_compiled(flow_slug => 'named', shape => '{"steps": []}', allow_data_loss => false) ->> 'status',
  'compiled', 'the three arguments of pgflow 0.14 are enough'
);
select is(pgflow.ensure_flow_compiled('named', '{"steps": []}') ->> 'status', 'verified', 'so are the first two');
select isnt(
  (pg_temp.flow('Plain')).generation,
  (pg_temp.flow('bare')).generation,
  'no two flows share a generation'
);

select * from finish();
rollback;
