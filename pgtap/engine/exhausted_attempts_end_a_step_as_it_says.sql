begin;
\ir ../helpers.psql
select plan(42);

-- whenExhausted fail, the default.

select pg_temp.compile(
  'fails', 'step',
  jsonb_build_array(
    pg_temp.step('a', '', pg_temp.options(max_attempts => 1)), pg_temp.step('b', 'a'), pg_temp.step('other')
  )
);
select pg_temp.start('fails', 'fails');
select pg_temp.spoil('fails', 'a', 'out of luck');
select results_eq(
  $$ select status, error_message, failed_at is not null, skip_reason from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('fails'), 'a') $$,
  $$ values ('failed', 'out of luck', true, null::text) $$,
  'with whenExhausted fail the step fails with the message'
);
select results_eq(
  $$ select status, failed_at is not null, completed_at, output from pgflow.runs where run_id = pg_temp.id('fails') $$,
  $$ values ('failed', true, null::timestamptz, null::jsonb) $$,
  'and the run too'
);
select results_eq(
  $$ select step_slug, status, cancelled_at is not null, skipped_at is not null from pgflow.step_tasks where run_id = pg_temp.id('fails') order by 1 $$,
  $$ values ('a', 'failed', false, false), ('other', 'cancelled', true, false) $$,
  'the task that failed is failed, the others are cancelled'
);
select is(pg_temp.steps('fails'), 'a failed, b created, other started', 'no other step changes');
select pg_temp.nothing_left('fails', 'nothing is left of the run');

-- whenExhausted skip.

select pg_temp.compile(
  'skips', 'step',
  jsonb_build_array(
    pg_temp.step('a', '', pg_temp.options(max_attempts => 2, base_delay => 0) || '{"whenExhausted": "skip"}'),
    pg_temp.step('b', 'a'),
    pg_temp.map('c', 'a'),
    pg_temp.step('d', 'a', pg_temp.only_if('{"a": {}}')),
    pg_temp.step('e', 'b,c,d')
  )
);
select pg_temp.start('skips', 'skips');
select pg_temp.spoil('skips', 'a', 'one');
select is(pg_temp.steps('skips'), 'a started, b created, c created, d created, e created', 'a retry comes first');
select pg_temp.spoil('skips', 'a', 'two');
select results_eq(
  $$
    select status, skip_reason, error_message, skipped_at is not null, remaining_tasks, output, failed_at
    from pgflow.step_states
    where (run_id, step_slug) = (pg_temp.id('skips'), 'a')
  $$,
  $$ values ('skipped', 'handler_failed', 'two', true, null::int, null::jsonb, null::timestamptz) $$,
  'with whenExhausted skip the step is skipped, and says why'
);
select results_eq(
  $$ select status, attempts_count, error_message, failed_at is not null, skipped_at from pgflow.step_tasks where (run_id, step_slug) = (pg_temp.id('skips'), 'a') $$,
  $$ values ('failed', 2, 'two', true, null::timestamptz) $$,
  'the task itself is failed'
);
select is(
  pg_temp.steps('skips'),
  'a skipped (handler_failed), b started, c completed, d skipped (condition_unmet), e created',
  'dependents go on: a step without that input, a map with zero tasks, a condition judged without it'
);
select is(pg_temp.run('skips'), 'started, 2 left', 'the run counts them');
select results_eq(
  $$ select input from pg_temp.claim('skips', 'b') $$, $$ values ('{}'::jsonb) $$, 'the output of the skipped step is absent'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('skips'), 'b', 0, '1') $$, 'the run goes on');
select results_eq(
  $$ select input from pg_temp.claim('skips', 'e') $$, $$ values ('{"b": 1, "c": []}'::jsonb) $$, 'with what there is'
);
select lives_ok($$ select pgflow.complete_task(pg_temp.id('skips'), 'e', 0, '2') $$, 'to its end');
select is(pg_temp.run('skips'), 'completed, 0 left', 'and completes');
select pg_temp.nothing_left('skips', 'nothing is left of it');

-- whenExhausted skip-cascade.

select pg_temp.compile(
  'cascades', 'step',
  jsonb_build_array(
    pg_temp.step('a', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip-cascade"}'),
    pg_temp.step('b', 'a'), pg_temp.map('c', 'a'), pg_temp.step('d', 'b,c'), pg_temp.step('free'), pg_temp.step('e', 'free,d'),
    pg_temp.step('f', 'free')
  )
);
select pg_temp.start('cascades', 'cascades');
select pg_temp.spoil('cascades', 'a', 'gone');
select is(
  pg_temp.steps('cascades'),
  'a skipped (handler_failed), b skipped (dependency_skipped), c skipped (dependency_skipped), d skipped (dependency_skipped), '
  'free started, e skipped (dependency_skipped), f created',
  'with whenExhausted skip-cascade everything downstream is skipped too'
);
select is(
  (select count(*) from pgflow.step_states where run_id = pg_temp.id('cascades') and error_message is not null), 1::bigint,
  'the message is kept where it happened'
);
select is(pg_temp.drain('cascades'), 2, 'the other branch runs on');
select is(pg_temp.output('cascades'), '{"f": {"free": {}}}', 'and its leaf is in the output');
select pg_temp.nothing_left('cascades', 'nothing is left');

-- In a map: a sibling is queued, another in progress, another done.

select pg_temp.compile(
  'map_' || replace(exhausted, '-', '_'), 'step',
  jsonb_build_array(
    pg_temp.map('m', '', pg_temp.options(max_attempts => 1) || jsonb_build_object('whenExhausted', exhausted)),
    pg_temp.map('n', 'm'), pg_temp.step('o', 'n'), pg_temp.step('p')
  )
)
from unnest(array['fail', 'skip', 'skip-cascade']) as exhausted;
select pg_temp.start('map_fail', 'map_fail', '[1, 2, 3, 4]'),
  pg_temp.start('map_skip', 'map_skip', '[1, 2, 3, 4]'),
  pg_temp.start('map_skip_cascade', 'map_skip_cascade', '[1, 2, 3, 4]');

create function pg_temp.break_map(flow_slug text)
returns text
language plpgsql
as $$
declare
  task pgflow.step_tasks;
begin
  -- Two are claimed and the first of them fails; before that the last one was done.
  perform from pg_temp.claim(flow_slug, 'm', 4);
  perform pgflow.complete_task(pg_temp.id(flow_slug), 'm', 3, '"done"');
  update pgflow.step_tasks
  set status = 'queued', started_at = null, attempts_count = 0
  where run_id = pg_temp.id(break_map.flow_slug)
    and step_slug = 'm'
    and task_index = 2;
  select * into task from pgflow.fail_task(pg_temp.id(flow_slug), 'm', 0, 'element broke');
  return task.status;
end
$$;

select is(pg_temp.break_map(flow_slug), 'failed', flow_slug || ': one task of a map exhausts its attempts')
from unnest(array['map_fail', 'map_skip', 'map_skip_cascade']) as flow_slug;
select is(pg_temp.tasks('map_fail', 'm'), 'failed, cancelled, cancelled, completed', 'fail: tasks started or queued are cancelled');
select is(pg_temp.tasks('map_skip', 'm'), 'failed, skipped, skipped, completed', 'skip: they are skipped');
select is(pg_temp.tasks('map_skip_cascade', 'm'), 'failed, skipped, skipped, completed', 'skip-cascade: the same');
select is(pg_temp.steps('map_fail'), 'm failed, n created, o created, p started', 'fail: the map fails');
select is(pg_temp.run('map_fail'), 'failed, 4 left', 'fail: the run fails');
select is(
  pg_temp.steps('map_skip'), 'm skipped (handler_failed), n completed, o started, p started', 'skip: a map of the map has no tasks'
);
select is(
  pg_temp.steps('map_skip_cascade'), 'm skipped (handler_failed), n skipped (dependency_skipped), o skipped (dependency_skipped), p started',
  'skip-cascade: nothing of it runs'
);
select results_eq(
  $$
    select flow_slug, error_message, remaining_tasks, output
    from pgflow.step_states
    where step_slug = 'm'
      and flow_slug like 'map\_skip%'
    order by 1
  $$,
  $$ values ('map_skip', 'element broke', null::int, null::jsonb), ('map_skip_cascade', 'element broke', null, null) $$,
  'a skipped map keeps the message and has no output'
);
select pg_temp.nothing_left('map_fail', 'fail: nothing is left on any queue');
select is(pg_temp.drain('map_skip'), 2, 'skip: the rest runs');
select is(pg_temp.output('map_skip'), '{"o": {"n": []}, "p": {}}', 'skip: to its end');
select pg_temp.nothing_left('map_skip', 'skip: nothing is left');
select is(pg_temp.drain('map_skip_cascade'), 1, 'skip-cascade: the rest runs');
select is(pg_temp.run('map_skip_cascade'), 'completed, 0 left', 'skip-cascade: the run completes');
select pg_temp.nothing_left('map_skip_cascade', 'skip-cascade: nothing is left');

-- Three tasks: one exhausts its attempts, one is started, one is queued.

select pg_temp.start('map_skip', 'trio', '["a", "b", "c"]');
select is((select count(*) from pg_temp.claim('map_skip', 'm', 2)), 2::bigint, 'two of three tasks are started');
select is(
  (select status from pgflow.fail_task(pg_temp.id('trio'), 'm', 0, 'x')), 'failed', 'the first one exhausts its attempts'
);
select is(pg_temp.tasks('trio', 'm'), 'failed, skipped, skipped', 'the started and the queued one are skipped');

select * from finish();
rollback;
