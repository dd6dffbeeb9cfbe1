begin;
\ir ../helpers.psql
select plan(19);

-- A root map over nothing, and maps of it.

select pg_temp.compile(
  'empty', 'step',
  jsonb_build_array(
    pg_temp.map('a'), pg_temp.map('b', 'a'), pg_temp.map('c', 'b'), pg_temp.step('d', 'c'), pg_temp.step('other')
  )
);
select pg_temp.start('empty', 'r', '[]');

select is(
  pg_temp.steps('r'), 'a completed, b completed, c completed, d started, other started',
  'an empty root map completes at once, and so do maps of maps of it'
);
select results_eq(
  $$
    select step_slug, initial_tasks, remaining_tasks, remaining_deps, output, started_at is not null, completed_at is not null
    from pgflow.step_states
    where run_id = pg_temp.id('r')
      and step_slug in ('a', 'b', 'c')
    order by 1
  $$,
  $$
    values
    ('a', 0, 0, 0, '[]'::jsonb, true, true),
    ('b', 0, 0, 0, '[]', true, true),
    ('c', 0, 0, 0, '[]', true, true)
  $$,
  'their output is an empty array'
);
select is(pg_temp.run('r'), 'started, 2 left', 'each of them counts as a step done');
select is(
  (select count(*) from pgflow.step_tasks where run_id = pg_temp.id('r') and step_slug in ('a', 'b', 'c')), 0::bigint,
  'they have no tasks'
);
select is(
  (select array_agg(queue_name order by queue_name) from pg_temp.messages('empty')), array['empty__d', 'empty__other'], 'nor messages'
);
select results_eq(
  $$ select input from pg_temp.claim('empty', 'd') $$,
  $$ values ('{"c": []}'::jsonb) $$,
  'a step behind them gets the empty array'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('r'), 'd', 0, '1') $$, 'and goes on');
select pg_temp.work('empty', 'other', '2');
select is(pg_temp.output('r'), '{"d": 1, "other": 2}', 'to the end of the run');
select pg_temp.nothing_left('empty', 'nothing is left of it');

-- Nothing but empty maps.

select pg_temp.compile('void', 'step', jsonb_build_array(pg_temp.map('a'), pg_temp.map('b', 'a'), pg_temp.map('c', 'a')));
select results_eq(
  $$ select status, remaining_steps, output, completed_at is not null from pgflow.start_flow('void', '[]', pg_temp.id('v')) $$,
  $$ values ('completed', 0, '{"b": [], "c": []}'::jsonb, true) $$,
  'a run of nothing but empty maps is complete when it starts'
);
select pg_temp.nothing_left('void', 'and has no message');

-- A dependent map becomes empty.

select pg_temp.compile(
  'later', 'flow',
  jsonb_build_array(
    pg_temp.step('list'), pg_temp.map('a', 'list'), pg_temp.map('b', 'a'), pg_temp.step('c', 'b,list')
  )
);
select pg_temp.start('later', 'l');
select pg_temp.work('later', null, '[]');
select is(
  pg_temp.steps('l'), 'list completed, a completed, b completed, c started',
  'a single step that gives an empty array completes the maps behind it'
);
select is(pg_temp.run('l'), 'started, 1 left', 'with all counts right');
select results_eq(
  $$ select step_slug, input from pg_temp.claim('later') $$,
  $$ values ('c', '{"b": [], "list": []}'::jsonb) $$,
  'and starts what waited for them'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('l'), 'c', 0, '"end"') $$, 'it ends');
select is(pg_temp.run('l'), 'completed, 0 left', 'and so does the run');
select pg_temp.nothing_left('later', 'nothing is left of this either');

-- An empty map whose condition is not met is skipped, not completed.

select pg_temp.compile(
  'judged', 'step',
  jsonb_build_array(pg_temp.step('list'), pg_temp.map('a', 'list', pg_temp.only_if('{"list": [1]}')), pg_temp.map('b', 'a'), pg_temp.step('c', 'a'))
);
select pg_temp.start('judged', 'j');
select pg_temp.work('judged', 'list', '[]');
select is(
  pg_temp.steps('j'), 'list completed, a skipped (condition_unmet), b completed, c started',
  'conditions come before emptiness'
);
select is(
  (select output from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('j'), 'b')), '[]',
  'a map of a skipped step is empty'
);

select * from finish();
rollback;
