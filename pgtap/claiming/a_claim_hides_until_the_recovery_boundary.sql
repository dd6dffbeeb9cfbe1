-- The message of a claimed task comes back exactly when recovery may take the task: 30 seconds after the effective
-- timeout, counted from the claim. Every time, whatever plan is used.
begin;
\ir helpers.psql

select plan(24);

select results_eq(
  $$
    select
      pgflow.recovery_boundary('2026-01-01 00:00:00+00', 60, null),
      pgflow.recovery_boundary('2026-01-01 00:00:00+00', 60, '2026-01-01 00:00:10+00'),
      pgflow.recovery_boundary('2026-01-01 00:00:00+00', 60, '2026-01-01 00:10:00+00')
  $$,
  $$
    values (
      '2026-01-01 00:01:30+00'::timestamptz, '2026-01-01 00:01:30+00'::timestamptz, '2026-01-01 00:10:30+00'::timestamptz
    )
  $$,
  'the boundary is 30 seconds after the timeout or the extended lease, whichever is later'
);

select pg_temp.compile(
  'f', 'step',
  jsonb_build_array(
    pg_temp.map('short', more => pg_temp.options(timeout => 5)),
    pg_temp.map('long', more => pg_temp.options(timeout => 600)),
    pg_temp.map('own'),
    pg_temp.map('endless', more => pg_temp.options(timeout => 2147483647))
  ),
  '{"timeout": 60}'
);
select pg_temp.compile(
  'g', 'flow', jsonb_build_array(pg_temp.map('short', more => pg_temp.options(timeout => 5)), pg_temp.map('own')),
  '{"timeout": 60}'
);
select pg_temp.start('f', 'r', (select jsonb_agg(number) from generate_series(1, 100) as number));
select pg_temp.start('g', 's', (select jsonb_agg(number) from generate_series(1, 10) as number));

-- Of every started task: how long after its start its message comes back.
create function pg_temp.hidden_for(step_slug text, run_name text default 'r')
returns setof interval
language sql
as $$
  select distinct pg_temp.vt(task.queue_name, task.message_id) - task.started_at
  from pgflow.step_tasks as task
  where task.run_id = pg_temp.id(run_name)
    and task.step_slug = hidden_for.step_slug
    and task.status = 'started'
$$;

select is((select count(*) from pg_temp.claim('f', 'short', 3)), 3::bigint, 'polled: step timeout 5');
select results_eq(
  $$select pg_temp.hidden_for('short')$$, array[interval '35 s'],
  'a shorter timeout of the step counts'
);
select is((select count(*) from pg_temp.claim('f', 'long', 3)), 3::bigint, 'polled: step timeout 600');
select results_eq(
  $$select pg_temp.hidden_for('long')$$, array[interval '630 s'],
  'a longer timeout of the step counts'
);
select is((select count(*) from pg_temp.claim('f', 'own', 3)), 3::bigint, 'polled: no timeout of its own');
select results_eq($$select pg_temp.hidden_for('own')$$, array[interval '90 s'], 'the timeout of the flow counts else');
select is((select count(*) from pg_temp.claim('f', 'endless', 3)), 3::bigint, 'polled: the longest timeout');
select results_eq(
  $$select pg_temp.hidden_for('endless')$$, array[make_interval(secs => 31536030)], 'a timeout is capped at a year'
);

-- As a client does that reads by itself, for a second.
create function pg_temp.read_and_claim(messages int)
returns bigint
language plpgsql
as $$
declare
  ids bigint[] := array(select message.msg_id from pgmq.read('f__short', 1, messages) as message);
begin
  return (select count(*) filter (where claimed.outcome = 'claimed') from pg_temp.claim_messages('f', 'short', ids) as claimed);
end
$$;

select is(pg_temp.read_and_claim(4), 4::bigint, 'read for a second, then claimed');
select results_eq(
  $$select pg_temp.hidden_for('short')$$, array[interval '35 s'],
  'the claim replaces the second of the read'
);

set local plan_cache_mode to force_generic_plan;
select is(
  (select array_agg(pg_temp.read_and_claim(2)) from generate_series(1, 7)), array[2, 2, 2, 2, 2, 2, 2]::bigint[],
  'claimed seven times under generic plans'
);
select results_eq(
  $$select pg_temp.hidden_for('short')$$, array[interval '35 s'],
  'every message is hidden until its boundary'
);
set local plan_cache_mode to auto;

set local enable_hashjoin to off;
set local enable_mergejoin to off;
set local enable_seqscan to off;
select is(pg_temp.read_and_claim(5), 5::bigint, 'claimed with nested loops alone');
select results_eq(
  $$select pg_temp.hidden_for('short')$$, array[interval '35 s'],
  'every message is hidden until its boundary'
);

set local enable_hashjoin to on;
set local enable_seqscan to on;
set local enable_nestloop to off;
set local enable_indexscan to off;
set local enable_bitmapscan to off;
select is(pg_temp.read_and_claim(5), 5::bigint, 'claimed with hash joins alone');
select results_eq(
  $$select pg_temp.hidden_for('short')$$, array[interval '35 s'],
  'every message is hidden until its boundary'
);

set local enable_hashjoin to off;
set local enable_mergejoin to on;
set local enable_hashagg to off;
set local plan_cache_mode to force_generic_plan;
select is(pg_temp.read_and_claim(5), 5::bigint, 'claimed with merge joins alone, under generic plans');
select results_eq(
  $$select pg_temp.hidden_for('short')$$, array[interval '35 s'],
  'every message is hidden until its boundary'
);
set local plan_cache_mode to auto;
set local enable_nestloop to on;
set local enable_hashjoin to on;
set local enable_indexscan to on;
set local enable_bitmapscan to on;
set local enable_hashagg to on;

select is(
  (
    select count(*)
    from pgflow.start_tasks(
      'g',
      array(select message.msg_id from pgmq.read('g', 1, 20) as message),
      pg_temp.worker('g')
    )
  ),
  20::bigint,
  'start_tasks() claims the queue of a flow-mode flow'
);
select results_eq(
  $$select pg_temp.hidden_for('short', 's')$$, array[interval '35 s'],
  'each task by its own step''s timeout'
);
select results_eq($$select pg_temp.hidden_for('own', 's')$$, array[interval '90 s'], 'or by the flow''s');

-- The next attempt: counted anew, the old extension forgotten.
select pgflow.extend_task(pg_temp.id('r'), 'own', 0, pg_temp.worker('f', 'own'), 1, 3600);
select pgflow.fail_task(pg_temp.id('r'), 'own', 0, 'broken');
select is(
  (select attempt from pg_temp.claim_messages('f', 'own', array[pg_temp.msg('r', 'own', 0)])), 2,
  'claimed a second time'
);
select results_eq(
  $$select pg_temp.hidden_for('own')$$, array[interval '90 s'], 'an extension of an earlier attempt is forgotten'
);

select *
from finish();
rollback;
