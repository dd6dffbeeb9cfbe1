begin;
\ir ../helpers.psql
select plan(33);

-- A chain.

select pg_temp.compile(
  'chain', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a'), pg_temp.step('c', 'b'))
);
select pg_temp.start('chain', 'chain', '{"n": 1}');

select is(pg_temp.steps('chain'), 'a started, b created, c created', 'a chain starts with its first step');
select is_empty($$ select * from pg_temp.claim('chain', 'b') $$, 'there is no work for the second step yet');
select results_eq(
  $$ select outcome, flow_slug, step_slug, task_index, attempt, input, flow_input from pg_temp.claim('chain', 'a') $$,
  $$ values ('claimed', 'chain', 'a', 0, 1, '{}'::jsonb, '{"n": 1}'::jsonb) $$,
  'a root step gets an empty input, and the input of the run beside it'
);
select results_eq(
  $$
    select run_id, step_slug, task_index, status, output, completed_at is not null, error_message
    from pgflow.complete_task(pg_temp.id('chain'), 'a', 0, '{"x": [1, 2]}')
  $$,
  $$ values (pg_temp.id('chain'), 'a', 0, 'completed', '{"x": [1, 2]}'::jsonb, true, null::text) $$,
  'complete_task returns the row of the task as it now is'
);
select results_eq(
  $$
    select status, remaining_tasks, output, completed_at is not null
    from pgflow.step_states
    where (run_id, step_slug) = (pg_temp.id('chain'), 'a')
  $$,
  $$ values ('completed', 0, '{"x": [1, 2]}'::jsonb, true) $$,
  'the output of a single step is that of its task'
);
select is(pg_temp.run('chain'), 'started, 2 left', 'a step less remains');
select is(pg_temp.steps('chain'), 'a completed, b started, c created', 'the next step is started');
select results_eq(
  $$ select input, flow_input from pg_temp.claim('chain', 'b') $$,
  $$ values ('{"a": {"x": [1, 2]}}'::jsonb, null::jsonb) $$,
  'a step gets the outputs of its dependencies by slug, and not the input of the run'
);
select lives_ok(
  $$ select pgflow.complete_task(pg_temp.id('chain'), 'b', 0, null) $$,
  'an output may be NULL'
);
select results_eq(
  $$ select input from pg_temp.claim('chain', 'c') $$,
  $$ values ('{"b": null}'::jsonb) $$,
  'which dependents get as null'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('chain'), 'c', 0, '"end"') $$, 'the last step ends');
select results_eq(
  $$
    select status, remaining_steps, output, completed_at >= started_at, failed_at
    from pgflow.runs
    where run_id = pg_temp.id('chain')
  $$,
  $$ values ('completed', 0, '{"c": "end"}'::jsonb, true, null::timestamptz) $$,
  'the run completes with the output of its leaf step only'
);
select pg_temp.nothing_left('chain', 'a chain leaves nothing behind');
select results_eq(
  $$ select queue_name, count(*) from pg_temp.archived('chain') group by 1 order by 1 $$,
  $$ values ('chain__a', 1::bigint), ('chain__b', 1), ('chain__c', 1) $$,
  'each message is in the archive of its own queue'
);

-- A diamond.

select pg_temp.compile(
  'diamond', 'step',
  jsonb_build_array(
    pg_temp.step('top'), pg_temp.step('left', 'top'), pg_temp.step('right', 'top'), pg_temp.step('bottom', 'right,left,top')
  )
);
select pg_temp.start('diamond', 'diamond');
select pg_temp.work('diamond', 'top', '1');

select is(
  pg_temp.steps('diamond'), 'top completed, left started, right started, bottom created', 'both sides start together'
);
select pg_temp.work('diamond', 'right', '2');
select is(
  pg_temp.steps('diamond'), 'top completed, left started, right completed, bottom created',
  'the bottom waits for both sides'
);
select is(
  (select remaining_deps from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('diamond'), 'bottom')), 1,
  'it counts what it still waits for'
);
select pg_temp.work('diamond', 'left', '3');
select results_eq(
  $$ select input from pg_temp.claim('diamond', 'bottom') $$,
  $$ values ('{"top": 1, "right": 2, "left": 3}'::jsonb) $$,
  'the bottom gets all three outputs'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('diamond'), 'bottom', 0, '4') $$, 'and ends');
select is(pg_temp.output('diamond'), '{"bottom": 4}', 'only the leaf is in the output');
select pg_temp.nothing_left('diamond', 'a diamond leaves nothing behind');

-- Both sides end in one call.

select pg_temp.start('diamond', 'at once');
select pg_temp.work('diamond', 'top', '1');
select pg_temp.take('diamond', 'left'), pg_temp.take('diamond', 'right');
select results_eq(
  $$
    select step_slug, status
    from pgflow.complete_tasks(
      jsonb_build_array(
        jsonb_build_object('run_id', pg_temp.id('at once'), 'step_slug', 'right', 'task_index', 0, 'output', 2),
        jsonb_build_object('run_id', pg_temp.id('at once'), 'step_slug', 'left', 'task_index', 0, 'output', 3)
      )
    )
  $$,
  $$ values ('right', 'completed'), ('left', 'completed') $$,
  'both dependencies of a step can end in one call'
);
select is(
  pg_temp.steps('at once'), 'top completed, left completed, right completed, bottom started',
  'and release it once'
);
select is(pg_temp.tasks('at once', 'bottom'), 'queued', 'with one task');
select is(pg_temp.run('at once'), 'started, 1 left', 'and count twice');

-- A fan-out, and several leaves.

select pg_temp.compile(
  'fan', 'step',
  jsonb_build_array(pg_temp.step('root')) || (select jsonb_agg(pg_temp.step('leaf' || n, 'root') order by n) from generate_series(1, 8) as n)
  || jsonb_build_array(pg_temp.step('alone'))
);
select pg_temp.start('fan', 'fan', '"in"');
select pg_temp.work('fan', 'root', '"out"');
select is(
  (
    select count(*)
    from pgflow.step_tasks
    where run_id = pg_temp.id('fan')
      and step_slug like 'leaf%'
      and status = 'queued'
      and queue_name = 'fan__' || step_slug
  ),
  8::bigint,
  'a fan-out starts every dependent, each on its own queue'
);
select is(pg_temp.drain('fan', '{"alone": 0, "leaf3": 3}'), 9, 'all of them can be worked on');
select is(
  pg_temp.output('fan') - 'leaf3' - 'alone',
  (select jsonb_object_agg('leaf' || n, '{"root": "out"}'::jsonb) from generate_series(1, 8) as n where n <> 3),
  'the output of the run has every leaf'
);
select is(
  (select array_agg(key order by key collate "C") from jsonb_object_keys(pg_temp.output('fan')) as key),
  array['alone', 'leaf1', 'leaf2', 'leaf3', 'leaf4', 'leaf5', 'leaf6', 'leaf7', 'leaf8'],
  'a step without any dependency or dependent too'
);
select pg_temp.nothing_left('fan', 'a fan-out leaves nothing behind');

-- A fan-in from many, in one queue.

select pg_temp.compile(
  'gather', 'flow',
  (select jsonb_agg(pg_temp.step('s' || n) order by n) from generate_series(1, 30) as n)
  || jsonb_build_array(pg_temp.step('all', (select string_agg('s' || n, ',') from generate_series(1, 30) as n)))
);
select pg_temp.start('gather', 'gather');
select is(pg_temp.drain('gather', (select jsonb_object_agg('s' || n, n) from generate_series(1, 30) as n), 7), 31, 'a fan-in runs once after all it waits for');
select is(
  pg_temp.output('gather'),
  jsonb_build_object('all', (select jsonb_object_agg('s' || n, n) from generate_series(1, 30) as n)),
  'with all that it waited for'
);
select pg_temp.nothing_left('gather', 'a fan-in leaves nothing behind');

select * from finish();
rollback;
