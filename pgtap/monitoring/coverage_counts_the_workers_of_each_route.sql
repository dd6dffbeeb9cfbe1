-- Who serves which step, and what waits where: stale, deprecated, stopped and foreign workers don't count.
begin;
\ir ../workers/helpers.psql

select plan(24);

select pg_temp.step_flow('Orders', 'pay', 'Ship', 'mail');
select pg_temp.step_flow('other', 'pay');
select pg_temp.plain_flow('Plain', 'a', 'b');

create function pg_temp.coverage(flow_slug text)
returns text
language sql
as $$
  select string_agg(
    format('%s %s%s', step_slug, live_workers, case when is_covered then '' else ' uncovered' end), ', ' order by step_index
  )
  from pgflow.queue_coverage
  where queue_coverage.flow_slug = coverage.flow_slug
$$;

select results_eq(
  $$
    select flow_slug, step_slug, step_index, queue_name, queue_mode, last_heartbeat_at
    from pgflow.queue_coverage
    order by flow_slug collate "C", step_index
  $$,
  $$
    values
    ('Orders', 'pay', 0, 'orders__pay', 'step', null::timestamptz),
    ('Orders', 'Ship', 1, 'orders__ship', 'step', null),
    ('Orders', 'mail', 2, 'orders__mail', 'step', null),
    ('Plain', 'a', 0, 'plain', 'flow', null),
    ('Plain', 'b', 1, 'plain', 'flow', null),
    ('other', 'pay', 0, 'other__pay', 'step', null)
  $$,
  'every route of every flow is there'
);
select is(pg_temp.coverage('Orders'), 'pay 0 uncovered, Ship 0 uncovered, mail 0 uncovered', 'without workers no route is covered');

select pgflow.register_worker(pg_temp.id('pay 1'), 'pay', 'Orders', 'pay');
select pgflow.register_worker(pg_temp.id('pay 2'), 'pay', 'Orders', 'pay');
select pgflow.register_worker(pg_temp.id('ship'), 'ship', 'Orders', 'Ship');
select is(pg_temp.coverage('Orders'), 'pay 2, Ship 1, mail 0 uncovered', 'workers count for their own step, whatever its case');

-- Workers that are there and don't count.
select pgflow.register_worker(pg_temp.id('stale'), 'pay', 'Orders', 'pay');
select pg_temp.silence('stale', '31 seconds');
select pgflow.register_worker(pg_temp.id('deprecated'), 'pay', 'Orders', 'pay');
update pgflow.workers set deprecated_at = now() where worker_id = pg_temp.id('deprecated');
select pgflow.register_worker(pg_temp.id('stopped'), 'pay', 'Orders', 'pay');
select pgflow.mark_worker_stopped(pg_temp.id('stopped'));
select pgflow.register_worker(pg_temp.id('foreign'), 'pay', 'other', 'pay');
select pg_temp.old_worker('old', 'orders__pay');
select is(
  pg_temp.coverage('Orders'), 'pay 2, Ship 1, mail 0 uncovered',
  'stale, deprecated and stopped ones, those of another flow, and those without a subscription don''t'
);
select is(pg_temp.coverage('other'), 'pay 1', 'the other flow has its own');
update pgflow.workers set stop_reason = 'enough' where worker_id = pg_temp.id('pay 2');
select is(pg_temp.coverage('Orders'), 'pay 1, Ship 1, mail 0 uncovered', 'nor does one that was told to stop');
select pgflow.disable_worker_function('ship', 'it spoils orders');
select is(pg_temp.coverage('Orders'), 'pay 1, Ship 0 uncovered, mail 0 uncovered', 'nor those of a disabled function');
select is(
  (select last_heartbeat_at from pgflow.queue_coverage where step_slug = 'Ship'),
  (select last_heartbeat_at from pgflow.workers where worker_id = pg_temp.id('ship')),
  'but when it was last heard of is still shown'
);

-- Flow mode.
select is(pg_temp.coverage('Plain'), 'a 0 uncovered, b 0 uncovered', 'a flow-mode flow has a row a step too');
select pgflow.register_worker(pg_temp.id('plain'), 'plain', 'Plain');
select pg_temp.old_worker('old plain', 'Plain');
select is(
  pg_temp.coverage('Plain'), 'a 2, b 2', 'served by registered workers and by those of pgflow 0.14, as they write the queue'
);

-- An older generation.
select pgflow.ensure_flow_compiled('other', pg_temp.shape(pg_temp.step('pay'), pg_temp.step('b')), true, 'step');
update pgflow.workers set stop_reason = null where worker_id = pg_temp.id('foreign');
select is(pg_temp.coverage('other'), 'pay 0 uncovered, b 0 uncovered', 'workers of an older generation serve nothing');

-- Messages: two waiting, one claimed, one sent for later.
select pg_temp.start('Orders', 'r1');
select pg_temp.start('Orders', 'r2');
select pg_temp.start('Orders', 'r3');
select pg_temp.start('Orders', 'r4');
select count(*) from pgflow.poll_tasks(pg_temp.id('pay 1'), 1, 0);
select pgmq.set_vt('orders__pay', 4, 3600);
update pgmq.q_orders__pay set enqueued_at = enqueued_at - interval '1 hour' where msg_id = 2;
select results_eq(
  $$
    select messages_total, messages_visible, messages_in_flight, messages_delayed, oldest_message_age >= interval '1 hour'
    from pgflow.queue_coverage
    where queue_name = 'orders__pay'
  $$,
  $$values (4::bigint, 2::bigint, 1::bigint, 1::bigint, true)$$,
  'messages are counted as visible, in flight or delayed'
);
select results_eq(
  $$
    select messages_total, messages_visible, messages_in_flight, messages_delayed, oldest_message_age
    from pgflow.queue_coverage
    where queue_name = 'other__pay'
  $$,
  $$values (0::bigint, 0::bigint, 0::bigint, 0::bigint, null::interval)$$,
  'an empty queue has none and no age'
);
select is(
  (select messages_visible from pgflow.queue_coverage where queue_name = 'orders__ship'), 4::bigint,
  'another queue has its own'
);
update pgflow.step_tasks set started_at = now() - interval '1 hour' where status = 'started';
select pgmq.set_vt('orders__pay', 1, 0);
select is(
  (select messages_visible from pgflow.queue_coverage where queue_name = 'orders__pay'), 3::bigint,
  'a message whose lease is over is visible, whatever its task'
);

-- Gaps: where work waits.
select results_eq(
  $$select flow_slug, step_slug, queue_name, messages_total, last_heartbeat_at is null from pgflow.coverage_gaps()$$,
  $$
    values
    ('Orders', 'Ship', 'orders__ship', 4::bigint, false),
    ('Orders', 'mail', 'orders__mail', 4, true)
  $$,
  'gaps are routes with waiting work and no live worker, in order'
);
select is_empty($$select * from pgflow.coverage_gaps('other')$$, 'a flow without work has no gap though it has no worker');
select is(
  (select reason from pgflow.coverage_gaps('Orders') where step_slug = 'mail'),
  '4 messages wait and no live worker serves this queue; a worker of it was last heard of: never',
  'a gap says why it is one'
);
select pgflow.register_worker(pg_temp.id('mail'), 'mail', 'Orders', 'mail');
select results_eq(
  $$select step_slug from pgflow.coverage_gaps('Orders')$$, array['Ship'], 'a worker closes it'
);
select pgflow.register_worker(pg_temp.id('new ship'), 'new-ship', 'Orders', 'Ship');
select is_empty('select * from pgflow.coverage_gaps()', 'until there is none');

select pg_temp.start('Plain', 'p');
select is_empty('select * from pgflow.coverage_gaps()', 'a flow-mode flow with workers has none');
update pgflow.workers set deprecated_at = now() where queue_name ilike 'plain';
select results_eq(
  $$select flow_slug, step_slug, queue_name, messages_total from pgflow.coverage_gaps()$$,
  $$values ('Plain', null::text, 'plain', 2::bigint)$$,
  'without them it has one, for its whole queue'
);

select throws_ok(
  $$select * from pgflow.coverage_gaps('orders')$$, 'PF018', 'Flow "orders" is not known.', 'an unknown flow is refused'
);

-- A queue that somebody dropped.
select pgmq.drop_queue('orders__mail');
select results_eq(
  $$select messages_total, messages_visible, is_covered from pgflow.queue_coverage where step_slug = 'mail'$$,
  $$values (null::bigint, null::bigint, true)$$,
  'a queue that is gone breaks nothing and shows no figures'
);

select * from finish();
rollback;
