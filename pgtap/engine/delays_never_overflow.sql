begin;
\ir ../helpers.psql
select plan(18);

select results_eq(
  $$
    select pgflow.calculate_retry_delay(base, attempts)
    from (
      values
      (86400::numeric, 15), (5, 29), (1, 40), (1, 2147483647), (2147483647, 2147483647), (1e100, 3), (0, 2147483647),
      (1, 25)
    ) as delay (base, attempts)
  $$,
  $$
    values (31536000), (31536000), (31536000), (31536000), (31536000), (31536000), (0), (31536000)
  $$,
  'a retry delay is a year at most, whatever the figures'
);

select pg_temp.compile(
  'extreme', 'step',
  jsonb_build_array(
    pg_temp.step('day', '', pg_temp.options(max_attempts => 50, base_delay => 86400)),
    pg_temp.step('five', '', pg_temp.options(max_attempts => 50, base_delay => 5)),
    pg_temp.step('one', '', pg_temp.options(max_attempts => 50, base_delay => 1)),
    pg_temp.step('most', '', pg_temp.options(max_attempts => 2147483647, base_delay => 2147483647, timeout => 2147483647)),
    pg_temp.step('delayed', '', pg_temp.options(start_delay => 2147483647))
  )
);
select lives_ok($$ select pg_temp.start('extreme', 'r') $$, 'a start delay of the largest integer is no overflow');
select is(
  (
    select vt > clock_timestamp() + interval '364 days' and vt <= clock_timestamp() + interval '366 days'
    from pg_temp.messages('extreme')
    where queue_name = 'extreme__delayed'
  ),
  true,
  'it is capped at a year'
);

create function pg_temp.fail_attempt(step_slug text, attempt int)
returns text
language plpgsql
as $$
declare
  task pgflow.step_tasks;
  hidden interval;
begin
  update pgflow.step_tasks
  set attempts_count = attempt - 1
  where run_id = pg_temp.id('r')
    and step_tasks.step_slug = fail_attempt.step_slug;

  perform pg_temp.take('extreme', fail_attempt.step_slug);

  select * into task from pgflow.fail_task(pg_temp.id('r'), fail_attempt.step_slug, 0, 'x');

  select vt - clock_timestamp()
  into hidden
  from pg_temp.messages('extreme')
  where queue_name = 'extreme__' || fail_attempt.step_slug;

  return format(
    '%s after attempt %s, hidden for %s',
    task.status, task.attempts_count, case when hidden between '364 days' and '366 days' then 'a year' else hidden::text end
  );
end
$$;

select lives_ok($$ select pg_temp.take('extreme', 'most') $$, 'a timeout of the largest integer is no overflow');
select is(
  (select status from pgflow.fail_task(pg_temp.id('r'), 'most', 0, 'x')), 'queued', 'nor is a base delay of the largest integer'
);
select pg_temp.pass_time('extreme');
select is(pg_temp.fail_attempt('day', 15), 'queued after attempt 15, hidden for a year', 'base delay 86400, attempt 15');
select is(pg_temp.fail_attempt('five', 29), 'queued after attempt 29, hidden for a year', 'base delay 5, attempt 29');
select is(pg_temp.fail_attempt('one', 40), 'queued after attempt 40, hidden for a year', 'base delay 1, attempt 40 of 50');
select pg_temp.pass_time('extreme');
select is(pg_temp.fail_attempt('most', 2147483646), 'queued after attempt 2147483646, hidden for a year', 'the last attempt but one of all integers');
select pg_temp.is_sound('extreme', 'all of these are sound');

-- The same options as a flow's.

select pg_temp.compile(
  'inherit', 'flow', jsonb_build_array(pg_temp.step('a')), '{"maxAttempts": 2147483647, "baseDelay": 2147483647, "timeout": 2147483647}'
);
select pg_temp.start('inherit', 'i');
select lives_ok($$ select pg_temp.take('inherit') $$, 'the largest timeout of a flow is no overflow');
select is(
  (
    select vt - clock_timestamp() between '364 days' and '367 days'
    from pg_temp.messages('inherit')
  ),
  true,
  'it is a year'
);
select is((select status from pgflow.fail_task(pg_temp.id('i'), 'a', 0, 'x')), 'queued', 'nor is its largest base delay');
select is(
  (
    select vt - clock_timestamp() between '364 days' and '366 days'
    from pg_temp.messages('inherit')
  ),
  true,
  'it is a year too'
);

-- Ordinary start delays.

select pg_temp.compile(
  'later', 'step',
  jsonb_build_array(pg_temp.step('now'), pg_temp.map('then', 'now', pg_temp.options(start_delay => 3600)))
);
select pg_temp.start('later', 'l');
select pg_temp.work('later', 'now', '[1, 2, 3]');
select is(
  (select bool_and(vt - clock_timestamp() between '59 minutes' and '1 hour') and count(*) = 3 from pg_temp.messages('later')), true,
  'a start delay hides every message of a step'
);
select is(pg_temp.steps('l'), 'now completed, then started', 'though the step is started');
select is_empty($$ select * from pg_temp.claim('later', 'then', 10) $$, 'nothing can be claimed before it is over');
select pg_temp.pass_time('later');
select is((select count(*) from pg_temp.claim('later', 'then', 10)), 3::bigint, 'and everything after it');

select * from finish();
rollback;
