begin;
\ir ../helpers.psql
select plan(35);

-- Root steps are judged by the input of the run.

select pg_temp.compile(
  'roots', 'step',
  jsonb_build_array(
    pg_temp.step('paid', '', pg_temp.only_if('{"plan": {"paid": true}}')),
    pg_temp.step('clean', '', pg_temp.unless('{"draft": true}')),
    pg_temp.step('both', '', pg_temp.only_if('{"plan": {"paid": true}}') || pg_temp.unless('{"draft": true}')),
    pg_temp.step('always')
  )
);
select pg_temp.start('roots', input::text, input)
from unnest(
  array[
    '{"plan": {"paid": true, "seats": 3}}',
    '{"plan": {"paid": true}, "draft": true}',
    '{"draft": false}',
    '{"draft": true}',
    '{"plan": [{"paid": true}]}',
    '"plan"',
    'null'
  ]::jsonb[]
) as input;
select is(
  pg_temp.steps(input::jsonb::text), format('paid %s, clean %s, both %s, always started', paid, clean, judged_both), 'root steps with input ' || input
)
from (
  values
  ('{"plan": {"paid": true, "seats": 3}}', 'started', 'started', 'started'),
  ('{"plan": {"paid": true}, "draft": true}', 'started', 'skipped (condition_unmet)', 'skipped (condition_unmet)'),
  ('{"draft": false}', 'skipped (condition_unmet)', 'started', 'skipped (condition_unmet)'),
  ('{"draft": true}', 'skipped (condition_unmet)', 'skipped (condition_unmet)', 'skipped (condition_unmet)'),
  ('{"plan": [{"paid": true}]}', 'skipped (condition_unmet)', 'started', 'skipped (condition_unmet)'),
  ('"plan"', 'skipped (condition_unmet)', 'started', 'skipped (condition_unmet)'),
  ('null', 'skipped (condition_unmet)', 'started', 'skipped (condition_unmet)')
) as judged (input, paid, clean, judged_both);
select is(pg_temp.run('{"draft": true}'), 'started, 1 left', 'each skipped step counts once');
select results_eq(
  $$
    select skip_reason, error_message, remaining_tasks, output, skipped_at is not null, started_at, completed_at, failed_at
    from pgflow.step_states
    where (run_id, step_slug) = (pg_temp.id('{"draft": true}'), 'both')
  $$,
  $$
    values (
      'condition_unmet', null::text, null::int, null::jsonb, true, null::timestamptz, null::timestamptz, null::timestamptz
    )
  $$,
  'a skipped step says why and when'
);
select is(
  (select count(*) from pgflow.step_tasks where (run_id, step_slug) = (pg_temp.id('{"draft": true}'), 'both')), 0::bigint,
  'and never has a task'
);
select is(pg_temp.drain('roots') > 0, true, 'the other steps can be worked on');
select is(pg_temp.output('{"draft": true}'), '{"always": {}}', 'skipped leaves are absent from the output of the run');
select pg_temp.nothing_left('roots', 'nothing is left of these runs');

-- All root steps are skipped.

select pg_temp.compile(
  'none', 'step',
  jsonb_build_array(
    pg_temp.step('a', '', pg_temp.only_if('{"go": true}')), pg_temp.map('b', 'a'), pg_temp.step('c', 'b', pg_temp.only_if('{"b": [1]}'))
  )
);
select results_eq(
  $$ select status, remaining_steps, output from pgflow.start_flow('none', '{}', pg_temp.id('none')) $$,
  $$ values ('completed', 0, '{}'::jsonb) $$,
  'a run whose leaves are all skipped completes with an empty output'
);
select is(
  pg_temp.steps('none'), 'a skipped (condition_unmet), b completed, c skipped (condition_unmet)',
  'a map whose only dependency was skipped has no tasks, and completes'
);
select is(
  (select initial_tasks from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('none'), 'b')), 0, 'with zero tasks'
);
select pg_temp.nothing_left('none', 'and has no message');

-- Other steps are judged by what their dependencies gave.

select pg_temp.compile(
  'dependents', 'step',
  jsonb_build_array(
    pg_temp.step('sort'),
    pg_temp.step('other'),
    pg_temp.step('help', 'sort', pg_temp.only_if('{"sort": {"route": "help"}}')),
    pg_temp.step('sell', 'sort,other', pg_temp.only_if('{"sort": {"route": "sales"}, "other": {}}')),
    pg_temp.step('rest', 'sort', pg_temp.unless('{"sort": {"route": "help"}}')),
    pg_temp.step('end', 'help,sell,rest')
  )
);
select pg_temp.start('dependents', 'd', '{"sort": {"route": "sales"}}');
select pg_temp.work('dependents', 'sort', '{"route": "help"}');
select is(
  pg_temp.steps('d'),
  'sort completed, other started, help started, sell created, rest skipped (condition_unmet), end created',
  'a step is judged when its last dependency ended, by their outputs and not by the input of the run'
);
select is(
  (select remaining_deps from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('d'), 'end')), 2,
  'the dependents of a skipped step wait for one dependency less'
);
select pg_temp.work('dependents', 'other', '{"x": 1}');
select is(
  pg_temp.steps('d'),
  'sort completed, other completed, help started, sell skipped (condition_unmet), rest skipped (condition_unmet), end created',
  'a pattern can ask for several dependencies'
);
select pg_temp.work('dependents', 'help', '"helped"');
select results_eq(
  $$ select input from pg_temp.claim('dependents', 'end') $$,
  $$ values ('{"help": "helped"}'::jsonb) $$,
  'skipped dependencies are absent from the input'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('d'), 'end', 0, '1') $$, 'the run goes on');
select is(pg_temp.run('d'), 'completed, 0 left', 'to its end');
select pg_temp.nothing_left('dependents', 'nothing is left of it');

-- All dependencies were skipped.

select pg_temp.compile(
  'orphans', 'step',
  jsonb_build_array(
    pg_temp.step('a', '', pg_temp.only_if('{"a": 1}')),
    pg_temp.step('b', '', pg_temp.only_if('{"b": 1}')),
    pg_temp.step('plain', 'a,b'),
    pg_temp.step('wants', 'a,b', pg_temp.only_if('{"a": {}}')),
    pg_temp.step('unless', 'a,b', pg_temp.unless('{"a": {}}')),
    pg_temp.step('anything', 'a,b', pg_temp.only_if('{}')),
    pg_temp.step('nothing', 'a,b', pg_temp.unless('{}'))
  )
);
select pg_temp.start('orphans', 'o', '{"a": 2}');
select is(
  pg_temp.steps('o'),
  'a skipped (condition_unmet), b skipped (condition_unmet), plain started, wants skipped (condition_unmet), unless started, anything started, nothing skipped (condition_unmet)',
  'conditions of a step whose dependencies were all skipped are judged by an empty object'
);
select results_eq(
  $$ select input, flow_input from pg_temp.claim('orphans', 'plain') $$,
  $$ values ('{}'::jsonb, null::jsonb) $$,
  'which is the input of such a step'
);

-- Root maps are judged by the array, which contains no object of its own.

select pg_temp.compile(
  'arrays', 'step',
  jsonb_build_array(
    pg_temp.map('if', '', pg_temp.only_if('{"a": 1}')), pg_temp.map('not', '', pg_temp.unless('{"a": 1}')), pg_temp.map('after', 'if')
  )
);
select pg_temp.start('arrays', 'm', '[{"a": 1}, {"a": 2}]');
select is(
  pg_temp.steps('m'), 'if skipped (condition_unmet), not started, after completed',
  'an array does not contain an object, even if an element does'
);
select is(pg_temp.tasks('m', 'not'), 'queued, queued', 'the map that may run has its tasks');

-- A condition that fails the run.

select pg_temp.compile(
  'strict', 'step',
  jsonb_build_array(
    pg_temp.step('before'),
    pg_temp.step('gate', '', pg_temp.only_if('{"ok": true}', 'fail')),
    pg_temp.step('after', 'gate')
  )
);
select results_eq(
  $$ select status, failed_at is not null, completed_at, output from pgflow.start_flow('strict', '{"ok": false}', pg_temp.id('s')) $$,
  $$ values ('failed', true, null::timestamptz, null::jsonb) $$,
  'an unmet condition with whenUnmet fail fails the run'
);
select results_eq(
  $$
    select step_slug, status, error_message, failed_at is not null
    from pgflow.step_states
    where run_id = pg_temp.id('s')
    order by 1
  $$,
  $$
    values
    ('after', 'created', null::text, false),
    ('before', 'created', null, false),
    ('gate', 'failed', 'Condition not met', true)
  $$,
  'and its step, and no other step starts'
);
select pg_temp.nothing_left('strict', 'there is no work of it');
select pg_temp.start('strict', 's ok', '{"ok": true}');
select is(pg_temp.steps('s ok'), 'before started, gate started, after created', 'a met one does not');

-- Several unmet conditions at once.

select pg_temp.compile(
  'several', 'step',
  jsonb_build_array(
    pg_temp.step('go'),
    pg_temp.step('z', 'go', pg_temp.only_if('{"go": 1}', 'skip')),
    pg_temp.step('y', 'go', pg_temp.only_if('{"go": 1}', 'skip-cascade')),
    pg_temp.step('x', 'go', pg_temp.only_if('{"go": 1}', 'fail')),
    pg_temp.step('b', 'go', pg_temp.only_if('{"go": 1}', 'fail')),
    pg_temp.step('a', 'go')
  )
);
select pg_temp.start('several', 'several');
select pg_temp.work('several', 'go', '2');
select is(
  pg_temp.steps('several'), 'go completed, z created, y created, x failed, b created, a created',
  'of several unmet conditions that fail, the step with the lowest index fails, and nothing else is decided'
);
select is(pg_temp.run('several'), 'failed, 5 left', 'and the run with it');
select pg_temp.nothing_left('several', 'without a message left');

select * from finish();
rollback;
