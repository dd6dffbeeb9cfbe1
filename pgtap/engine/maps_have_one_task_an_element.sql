begin;
\ir ../helpers.psql
select plan(26);

select pg_temp.compile(
  'maps', 'step',
  jsonb_build_array(
    pg_temp.map('each'), pg_temp.map('again', 'each'), pg_temp.step('sum', 'again'), pg_temp.step('list', 'sum'),
    pg_temp.map('listed', 'list')
  )
);
select pg_temp.start('maps', 'r', '[10, null, {"a": [1]}, [], "x"]');

-- A root map.

select is(pg_temp.tasks('r', 'each'), 'queued, queued, queued, queued, queued', 'a root map has one task for each element of the input');
select results_eq(
  $$ select (message ->> 'task_index')::int from pg_temp.messages('maps') order by msg_id $$,
  $$ values (0), (1), (2), (3), (4) $$,
  'message ids ascend with the task index'
);
select results_eq(
  $$
    select task.task_index
    from pgflow.step_tasks as task
    where task.run_id = pg_temp.id('r')
    order by task.message_id
  $$,
  $$ values (0), (1), (2), (3), (4) $$,
  'and each task has the id of its own message'
);
select is_empty(
  $$
    select *
    from pgflow.step_tasks as task
    inner join pg_temp.messages('maps') as message on message.msg_id = task.message_id
    where (message.message ->> 'task_index')::int <> task.task_index
  $$,
  'which names it'
);
select results_eq(
  $$ select task_index, input, flow_input from pg_temp.claim('maps', 'each', 2) order by msg_id $$,
  $$ values (0, '10'::jsonb, null::jsonb), (1, 'null', null) $$,
  'a task of a map gets its bare element and nothing else'
);
select results_eq(
  $$ select task_index, input, flow_input from pg_temp.claim('maps', 'each', 10) order by msg_id $$,
  $$ values (2, '{"a": [1]}'::jsonb, null::jsonb), (3, '[]', null), (4, '"x"', null) $$,
  'whatever kind of value that is'
);
select lives_ok(
  $$ select pgflow.complete_task(pg_temp.id('r'), 'each', 4, '"last"') $$, 'the tasks of a map end in any order'
);
select results_eq(
  $$ select status, initial_tasks, remaining_tasks, output from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r'), 'each') $$,
  $$ values ('started', 5, 4, null::jsonb) $$,
  'the map counts those that remain and has no output yet'
);
select is(pg_temp.run('r'), 'started, 5 left', 'nor has it ended');
select is(
  (select initial_tasks from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r'), 'again')), null,
  'a dependent map does not know its tasks yet'
);
select is(
  (
    select array_agg(status order by task_index)
    from pgflow.complete_tasks(
      (
        select jsonb_agg(jsonb_build_object('run_id', pg_temp.id('r'), 'step_slug', 'each', 'task_index', n, 'output', output))
        from (values (2, '2'::jsonb), (0, '{"zero": 0}'), (3, '[3, 3]'), (1, null)) as done (n, output)
      )
    )
  ),
  array['completed', 'completed', 'completed', 'completed'],
  'the others end in one call'
);
select is(
  (select output from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r'), 'each')),
  '[{"zero": 0}, null, 2, [3, 3], "last"]',
  'the output of a map is the array of all outputs in the order of the tasks, nulls kept'
);
select is(pg_temp.run('r'), 'started, 4 left', 'a map counts as one step');

-- A map of a map.

select results_eq(
  $$ select status, initial_tasks, remaining_tasks from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r'), 'again') $$,
  $$ values ('started', 5, 5) $$,
  'a map of a map has as many tasks as that one'
);
select results_eq(
  $$ select task_index, input from pg_temp.claim('maps', 'again', 10) order by msg_id $$,
  $$ values (0, '{"zero": 0}'::jsonb), (1, 'null'), (2, '2'), (3, '[3, 3]'), (4, '"last"') $$,
  'each gets the output of the task with its index'
);
select is(
  (
    select count(*)
    from pgflow.complete_tasks(
      (
        select jsonb_agg(jsonb_build_object('run_id', pg_temp.id('r'), 'step_slug', 'again', 'task_index', n, 'output', n * n))
        from generate_series(0, 4) as n
      )
    )
    where status = 'completed'
  ),
  5::bigint,
  'the map of a map ends'
);

-- A single step after a map, and a map after a single step.

select results_eq(
  $$ select input, flow_input from pg_temp.claim('maps', 'sum') $$,
  $$ values ('{"again": [0, 1, 4, 9, 16]}'::jsonb, null::jsonb) $$,
  'a single step gets the whole array of a map by its slug'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('r'), 'sum', 0, '30') $$, 'a single step that feeds no map gives what it likes');
select pg_temp.work('maps', 'list', '["a", "b"]');
select results_eq(
  $$ select task_index, input from pg_temp.claim('maps', 'listed', 10) order by msg_id $$,
  $$ values (0, '"a"'::jsonb), (1, '"b"') $$,
  'a map has a task for each element that its single dependency gave'
);
select is(
  (
    select count(*)
    from pgflow.complete_tasks(
      (
        select jsonb_agg(jsonb_build_object('run_id', pg_temp.id('r'), 'step_slug', 'listed', 'task_index', n, 'output', null))
        from generate_series(0, 1) as n
      )
    )
    where status = 'completed'
  ),
  2::bigint,
  'results may have no output'
);
select is(pg_temp.output('r'), '{"listed": [null, null]}', 'those are null in the output of the map and of the run');
select is(pg_temp.run('r'), 'completed, 0 left', 'the run completes');
select pg_temp.nothing_left('maps', 'maps leave nothing behind');

-- Several maps of one source, in one queue with everything else.

select pg_temp.compile(
  'shared', 'flow',
  jsonb_build_array(
    pg_temp.step('list'), pg_temp.map('x', 'list'), pg_temp.map('y', 'list'), pg_temp.step('join', 'x,y,list')
  )
);
select pg_temp.start('shared', 's');
select is(pg_temp.drain('shared', '{"list": [1, 2, 3]}', 2), 8, 'two maps of one source have their own tasks each');
select is(
  pg_temp.output('s'), '{"join": {"x": [1, 2, 3], "y": [1, 2, 3], "list": [1, 2, 3]}}', 'and a step may depend on maps and their source'
);
select pg_temp.nothing_left('shared', 'nothing is left of them');

select * from finish();
rollback;
