begin;
\ir ../helpers.psql
select plan(24);

-- whenUnmet skip: the dependents go on.

select pg_temp.compile(
  'lone', 'step',
  jsonb_build_array(
    pg_temp.step('a'),
    pg_temp.step('b', 'a', pg_temp.only_if('{"a": 1}', 'skip')),
    pg_temp.step('c', 'b'),
    pg_temp.map('d', 'b'),
    pg_temp.step('e', 'd,c')
  )
);
select pg_temp.start('lone', 'lone');
select pg_temp.work('lone', 'a', '2');
select is(
  pg_temp.steps('lone'), 'a completed, b skipped (condition_unmet), c started, d completed, e created',
  'a plain skip counts as an ended dependency'
);
select is(pg_temp.run('lone'), 'started, 2 left', 'one step less for the skip and one for the empty map');
select pg_temp.work('lone', 'c', '"c"');
select results_eq(
  $$ select input from pg_temp.claim('lone', 'e') $$,
  $$ values ('{"c": "c", "d": []}'::jsonb) $$,
  'what is behind gets what there is'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('lone'), 'e', 0, '1') $$, 'the run goes on');
select pg_temp.nothing_left('lone', 'nothing is left');

-- whenUnmet skip-cascade through diamonds, while another branch runs.

select pg_temp.compile(
  'deep', 'step',
  jsonb_build_array(
    pg_temp.step('root'),
    pg_temp.step('gate', 'root', pg_temp.only_if('{"root": 1}', 'skip-cascade')),
    pg_temp.step('side', 'root'),
    pg_temp.step('l', 'gate'), pg_temp.step('r', 'gate'),
    pg_temp.map('m', 'l'),
    pg_temp.step('join', 'm,r,side'),
    pg_temp.step('leaf', 'join'),
    pg_temp.step('other', 'side')
  )
);
select pg_temp.start('deep', 'deep');
select pg_temp.work('deep', 'root', '2');
select is(
  pg_temp.steps('deep'),
  'root completed, gate skipped (condition_unmet), side started, l skipped (dependency_skipped), r skipped (dependency_skipped), '
  'm skipped (dependency_skipped), join skipped (dependency_skipped), leaf skipped (dependency_skipped), other created',
  'skip-cascade skips everything downstream, through diamonds and maps, and nothing beside it'
);
select is(pg_temp.run('deep'), 'started, 2 left', 'each skipped step counts once');
select is(
  (
    select count(*)
    from pgflow.step_states
    where run_id = pg_temp.id('deep')
      and status = 'skipped'
      and skipped_at is not null
      and remaining_tasks is null
      and error_message is null
  ),
  6::bigint,
  'all of them are skipped the same way'
);
select pg_temp.work('deep', 'side', '3');
select is(pg_temp.run('deep'), 'started, 1 left', 'the other branch runs on');
select pg_temp.work('deep', 'other', '4');
select is(pg_temp.output('deep'), '{"other": 4}', 'and its leaf alone is in the output');
select pg_temp.nothing_left('deep', 'nothing is left of it');

-- A dependent of a cascade that already waits for nothing else is not started.

select pg_temp.compile(
  'late', 'step',
  jsonb_build_array(
    pg_temp.step('fast'), pg_temp.step('slow'), pg_temp.step('gate', 'slow', pg_temp.only_if('{"slow": 1}', 'skip-cascade')), pg_temp.step('both', 'fast,gate')
  )
);
select pg_temp.start('late', 'late');
select pg_temp.work('late', 'fast', '1');
select pg_temp.work('late', 'slow', '2');
select is(
  pg_temp.steps('late'), 'fast completed, slow completed, gate skipped (condition_unmet), both skipped (dependency_skipped)',
  'a step whose other dependencies completed is skipped by a cascade too'
);
select results_eq(
  $$ select status, output from pgflow.runs where run_id = pg_temp.id('late') $$,
  $$ values ('completed', '{}'::jsonb) $$,
  'a completed step with a skipped dependent is no leaf'
);
select pg_temp.nothing_left('late', 'nothing is left of this');

-- Several skips at once, some reached by the cascade of another.

select pg_temp.compile(
  'many', 'step',
  jsonb_build_array(
    pg_temp.step('a', '', pg_temp.only_if('{"go": 1}', 'skip-cascade')),
    pg_temp.step('b', '', pg_temp.only_if('{"go": 1}', 'skip')),
    pg_temp.step('c', '', pg_temp.only_if('{"go": 1}', 'skip-cascade')),
    pg_temp.step('ab', 'a,b'),
    pg_temp.step('ac', 'a,c'),
    pg_temp.step('of_b', 'b', pg_temp.only_if('{"b": 1}', 'skip-cascade')),
    pg_temp.step('end', 'of_b,ac'),
    pg_temp.step('free')
  )
);
select pg_temp.start('many', 'many');
select is(
  pg_temp.steps('many'),
  'a skipped (condition_unmet), b skipped (condition_unmet), c skipped (condition_unmet), ab skipped (dependency_skipped), '
  'ac skipped (dependency_skipped), of_b skipped (condition_unmet), end skipped (dependency_skipped), free started',
  'steps that are skipped for a reason of their own keep it'
);
select is(pg_temp.run('many'), 'started, 1 left', 'no step is counted twice');
select pg_temp.is_sound('many', 'all is sound');

-- A skip meets a map whose tasks are known.

select pg_temp.compile(
  'mapped', 'step',
  jsonb_build_array(
    pg_temp.map('a', '', pg_temp.only_if('{"x": 1}', 'skip-cascade')), pg_temp.map('b', 'a'), pg_temp.step('c')
  )
);
select pg_temp.start('mapped', 'mapped', '[1, 2, 3]');
select is(
  pg_temp.steps('mapped'), 'a skipped (condition_unmet), b skipped (dependency_skipped), c started',
  'a root map with elements is skipped like any step'
);
select is((select count(*) from pgflow.step_tasks where run_id = pg_temp.id('mapped')), 1::bigint, 'and has no tasks');

-- The last step of a run is skipped.

select pg_temp.compile(
  'last', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b', 'a', pg_temp.unless('{}', 'skip')))
);
select pg_temp.start('last', 'last');
select pg_temp.work('last', 'a');
select is(pg_temp.run('last'), 'completed, 0 left', 'a skip of the last step completes the run');
select is(pg_temp.output('last'), '{}', 'with nothing in its output');
select pg_temp.nothing_left('last', 'and nothing left');

-- Two runs at once: one decides, the other waits.

select pg_temp.start('deep', 'one');
select pg_temp.start('deep', 'two');
select pg_temp.work('deep', 'root', '2');
select is(
  array[pg_temp.run('one'), pg_temp.run('two')], array['started, 2 left', 'started, 9 left'],
  'a cascade stays in its run'
);
select is(pg_temp.steps('two') like 'root started, gate created%', true, 'the other run is as it was');

select * from finish();
rollback;
