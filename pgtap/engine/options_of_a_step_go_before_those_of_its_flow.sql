begin;
\ir ../helpers.psql
select plan(11);

select pg_temp.compile(
  'f', 'step',
  jsonb_build_array(
    pg_temp.step('inherits'),
    pg_temp.step('overrides', '', pg_temp.options(max_attempts => 1, base_delay => 0, timeout => 5, start_delay => 9)),
    pg_temp.step('longer', '', pg_temp.options(timeout => 600)),
    pg_temp.step('zeroes', '', pg_temp.options(max_attempts => 0, base_delay => 0, start_delay => 0))
  ),
  '{"maxAttempts": 4, "baseDelay": 3, "timeout": 60}'
);
select pg_temp.compile('defaults', 'flow', jsonb_build_array(pg_temp.step('a')));

select results_eq(
  $$
    select step_slug, max_attempts, base_delay, timeout, start_delay
    from pgflow.step_options
    where flow_slug in ('f', 'defaults')
    order by flow_slug, step_index
  $$,
  $$
    values
    ('a', 3, 5, 60, 0),
    ('inherits', 4, 3, 60, 0),
    ('overrides', 1, 0, 5, 9),
    ('longer', 4, 3, 600, 0),
    ('zeroes', 0, 0, 60, 0)
  $$,
  'each option is the step''s own where it has one, else the flow''s, else the default'
);

-- Timeouts: a claim hides the message for the timeout that is in force and half a minute more.

select pg_temp.start('f', 'r');
select pg_temp.pass_time('f');

create function pg_temp.hidden_for(step_slug text)
returns text
language plpgsql
as $$
declare
  earliest timestamptz := clock_timestamp();
  latest timestamptz;
  vt timestamptz;
begin
  perform pg_temp.take('f', hidden_for.step_slug);
  latest := clock_timestamp();

  select message.vt into vt from pg_temp.messages('f') as message where message.message ->> 'step_slug' = hidden_for.step_slug;

  return (
    select string_agg(seconds::text, ' or ')
    from unnest(array[35, 90, 630]) as seconds
    where vt between earliest + make_interval(secs => seconds) and latest + make_interval(secs => seconds)
  );
end
$$;

select is(pg_temp.hidden_for('inherits'), '90', 'a step without a timeout has the flow''s');
select is(pg_temp.hidden_for('overrides'), '35', 'a shorter one is its own');
select is(pg_temp.hidden_for('longer'), '630', 'and so is a longer one');

-- Attempts.

select is((select status from pgflow.fail_task(pg_temp.id('r'), 'inherits', 0, 'x')), 'queued', 'a step without max attempts has the flow''s');
update pgflow.step_tasks set status = 'started', started_at = clock_timestamp(), attempts_count = 3 where step_slug = 'inherits';
select is((select status from pgflow.fail_task(pg_temp.id('r'), 'inherits', 0, 'x')), 'queued', 'the last but one is retried');
update pgflow.step_tasks set status = 'started', started_at = clock_timestamp(), attempts_count = 4 where step_slug = 'inherits';
select is((select status from pgflow.fail_task(pg_temp.id('r'), 'inherits', 0, 'x')), 'failed', 'the last one is not');

-- A change of options counts for work that is under way.

select pg_temp.start('f', 's');
select pg_temp.pass_time('f');
select pg_temp.take('f', 'overrides');
update pgflow.steps set opt_max_attempts = 2, opt_base_delay = 100 where (flow_slug, step_slug) = ('f', 'overrides');
select is((select status from pgflow.fail_task(pg_temp.id('s'), 'overrides', 0, 'x')), 'queued', 'an operator can allow more attempts while a task runs');
select is(
  (
    select vt - clock_timestamp() between '199 seconds' and '200 seconds'
    from pg_temp.messages('f')
    where message ->> 'step_slug' = 'overrides'
  ),
  true,
  'and a longer delay'
);
update pgflow.flows set opt_max_attempts = 1 where flow_slug = 'f';
select pg_temp.take('f', 'inherits');
select is((select status from pgflow.fail_task(pg_temp.id('s'), 'inherits', 0, 'x')), 'failed', 'or fewer, on the flow');
select pg_temp.nothing_left('f', 'nothing is left');

select * from finish();
rollback;
