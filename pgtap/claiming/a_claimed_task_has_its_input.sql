begin;
\ir helpers.psql

select plan(21);


create function pg_temp.shape()
returns jsonb
language sql
as $$
  select jsonb_build_array(
    pg_temp.step('root'),
    pg_temp.map('elements'),
    pg_temp.step('list'),
    pg_temp.map('of_list', 'list'),
    pg_temp.map('of_map', 'elements'),
    pg_temp.step('never', 'root', pg_temp.only_if('{"root": {"go": true}}')),
    pg_temp.step('joined', 'root,list,elements,never'),
    pg_temp.step('lonely', 'never'),
    pg_temp.map('all_of_them', 'list')
  )
$$;

select pg_temp.compile('f', 'step', pg_temp.shape());
select pg_temp.compile('g', 'flow', pg_temp.shape());

create function pg_temp.inputs(flow_slug text, step_slug text)
returns table (task_index int, input jsonb, flow_input jsonb)
language sql
as $$
  select task.task_index, task.input, task.flow_input
  from pg_temp.claim(
    inputs.flow_slug, case when inputs.flow_slug = 'f' then inputs.step_slug end, 1000
  ) as task
  where task.outcome = 'claimed'
    and task.step_slug = inputs.step_slug
$$;

select pg_temp.start('f', 'r', '[{"deep": [1, [2]]}, null, "text", 4, [5, 6], []]');

select results_eq(
  $$select * from pg_temp.inputs('f', 'root')$$,
  $$values (0, '{}'::jsonb, '[{"deep": [1, [2]]}, null, "text", 4, [5, 6], []]'::jsonb)$$,
  'a root single step gets an empty object, and the run''s input as flow_input'
);
select results_eq(
  $$select * from pg_temp.inputs('f', 'elements')$$,
  $$
    values
    (0, '{"deep": [1, [2]]}'::jsonb, null::jsonb),
    (1, 'null', null),
    (2, '"text"', null),
    (3, '4', null),
    (4, '[5, 6]', null),
    (5, '[]', null)
  $$,
  'a root map task gets its bare element of the run''s input, whatever it is, and no flow_input'
);

select pgflow.complete_task(pg_temp.id('r'), 'root', 0, '{"go": false}');
select pgflow.complete_task(pg_temp.id('r'), 'elements', number, to_jsonb(number * 10))
from generate_series(0, 4) as number;
select pgflow.complete_task(pg_temp.id('r'), 'elements', 5, null);
select pg_temp.work('f', 'list', '[[1], "two", {"three": 3}]');

select results_eq(
  $$select * from pg_temp.inputs('f', 'of_list')$$,
  $$values (0, '[1]'::jsonb, null::jsonb), (1, '"two"', null), (2, '{"three": 3}', null)$$,
  'a dependent map task gets its element of the dependency''s output'
);
select results_eq(
  $$select * from pg_temp.inputs('f', 'of_map')$$,
  $$
    values
    (0, '0'::jsonb, null::jsonb), (1, '10', null), (2, '20', null), (3, '30', null), (4, '40', null), (5, 'null', null)
  $$,
  'a map of a map gets the outputs of its tasks in their order, nulls kept'
);
select results_eq(
  $$select * from pg_temp.inputs('f', 'joined')$$,
  $$
    select
      0,
      '{
        "root": {"go": false}, "list": [[1], "two", {"three": 3}], "elements": [0, 10, 20, 30, 40, null]
      }'::jsonb,
      null::jsonb
  $$,
  'a dependent single step gets the outputs of its completed dependencies by slug; the skipped one is absent'
);
select results_eq(
  $$select * from pg_temp.inputs('f', 'lonely')$$,
  $$values (0, '{}'::jsonb, null::jsonb)$$,
  'with every dependency skipped it gets an empty object, and no flow_input'
);

-- Some of a map's tasks, out of order, and again.
select results_eq(
  $$
    select task_index, input
    from pg_temp.claim_messages(
      'f', 'all_of_them', array[pg_temp.msg('r', 'all_of_them', 2), pg_temp.msg('r', 'all_of_them', 0)]
    )
  $$,
  $$values (2, '{"three": 3}'::jsonb), (0, '[1]')$$,
  'part of a map gets its own elements'
);
select pgflow.fail_task(pg_temp.id('r'), 'all_of_them', 2, 'broken');
select results_eq(
  $$select attempt, input from pg_temp.claim_messages('f', 'all_of_them', array[pg_temp.msg('r', 'all_of_them', 2)])$$,
  $$values (2, '{"three": 3}'::jsonb)$$,
  'a second attempt gets the same'
);

-- Several runs in one batch.
select pg_temp.start('f', 'second', '["x", "y"]');
select pg_temp.start('f', 'third', '["z"]');
select results_eq(
  $$
    select task.run_id, task.task_index, task.input
    from pg_temp.claim('f', 'elements', 10) as task
  $$,
  $$
    values
    (pg_temp.id('second'), 0, '"x"'::jsonb), (pg_temp.id('second'), 1, '"y"'), (pg_temp.id('third'), 0, '"z"')
  $$,
  'tasks of several runs each get what is theirs'
);
select results_eq(
  $$select task.run_id, task.flow_input from pg_temp.claim('f', 'root', 10) as task$$,
  $$values (pg_temp.id('second'), '["x", "y"]'::jsonb), (pg_temp.id('third'), '["z"]')$$,
  'and their own run''s input'
);

-- The same through start_tasks() in flow mode.
select pg_temp.start('g', 's', '[{"deep": [1, [2]]}, null]');
create temporary table first_work as
select task.*
from pgflow.start_tasks(
  'g', array(select message.msg_id from pgmq.read('g', 60, 100) as message), pg_temp.worker('g')
) as task;

select is((select count(*) from first_work), 4::bigint, 'start_tasks() gives the work of all root steps');
select results_eq(
  $$select flow_slug, run_id, input, task_index, flow_input from first_work where step_slug = 'root'$$,
  $$values ('g', pg_temp.id('s'), '{}'::jsonb, 0, '[{"deep": [1, [2]]}, null]'::jsonb)$$,
  'a root single step: empty object and flow_input'
);
select results_eq(
  $$select input, task_index, flow_input from first_work where step_slug = 'elements' order by task_index$$,
  $$values ('{"deep": [1, [2]]}'::jsonb, 0, null::jsonb), ('null', 1, null)$$,
  'a root map: bare elements'
);
select is_empty(
  'select * from first_work where msg_id is distinct from pg_temp.msg(''s'', step_slug, task_index)',
  'each with its message'
);

select pgflow.complete_task(pg_temp.id('s'), 'root', 0, '{"go": false}');
select pgflow.complete_task(pg_temp.id('s'), 'elements', 0, '"A"');
select pgflow.complete_task(pg_temp.id('s'), 'elements', 1, '"B"');
select pgflow.complete_task(pg_temp.id('s'), 'list', 0, '[7]');
create temporary table second_work as
select task.*
from pgflow.start_tasks(
  'g', array(select message.msg_id from pgmq.read('g', 60, 100) as message), pg_temp.worker('g')
) as task;
select results_eq(
  'select step_slug, task_index, input, flow_input from second_work order by 1, 2',
  $$
    values
    ('all_of_them', 0, '7'::jsonb, null::jsonb),
    ('joined', 0, '{"root": {"go": false}, "list": [7], "elements": ["A", "B"]}', null),
    ('lonely', 0, '{}', null),
    ('of_list', 0, '7', null),
    ('of_map', 0, '"A"', null),
    ('of_map', 1, '"B"', null)
  $$,
  'dependents get the same through start_tasks()'
);

-- Whatever plan is used.
set local plan_cache_mode to force_generic_plan;
set local enable_nestloop to off;
select pg_temp.start('f', 'fourth', '[1, 2, 3]');
select results_eq(
  $$select input from pg_temp.claim('f', 'elements', 10)$$, array['1', '2', '3']::jsonb[],
  'generic plans without nested loops'
);
set local enable_nestloop to on;
set local enable_hashjoin to off;
set local enable_mergejoin to off;
select pg_temp.start('f', 'fifth', '[4, 5, 6]');
select results_eq(
  $$select input from pg_temp.claim('f', 'elements', 10)$$, array['4', '5', '6']::jsonb[],
  'generic plans with nested loops alone'
);
set local plan_cache_mode to force_custom_plan;
select pg_temp.start('f', 'sixth', '[7, 8]');
select results_eq(
  $$select input from pg_temp.claim('f', 'elements', 10)$$, array['7', '8']::jsonb[],
  'custom plans with nested loops alone'
);

-- Inputs that are no objects or arrays.
select pg_temp.compile('scalar', 'step', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('scalar', 'text', '"just text"');
select pg_temp.start('scalar', 'null', 'null');
select results_eq(
  $$select input, flow_input from pg_temp.claim('scalar', 'a', 10)$$,
  $$values ('{}'::jsonb, '"just text"'::jsonb), ('{}', 'null')$$,
  'any JSON value can be a run''s input'
);
select pg_temp.compile(
  'fed', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a'))
);
select pg_temp.start('fed', 'without output');
select pg_temp.work('fed', 'a', null);
select results_eq(
  $$select input from pg_temp.claim('fed', 'b')$$,
  array['{"a": null}'::jsonb],
  'a dependency that gave nothing is there, with null'
);
select is(
  (
    select array_agg(output)
    from pgflow.step_states
    where run_id = pg_temp.id('without output')
      and step_slug = 'a'
  ),
  array[null]::jsonb[],
  'which is what it gave'
);

select *
from finish();
rollback;
