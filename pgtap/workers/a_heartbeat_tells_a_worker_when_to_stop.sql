-- heartbeat() records and answers, worker_standing() only answers; the two agree on every reason to stop.
begin;
\ir helpers.psql

select plan(23);

select pg_temp.step_flow('f', 'a');
select pg_temp.step_flow('doomed', 'a');
select pg_temp.plain_flow('plain', 'a');

create function pg_temp.answer(name text)
returns text
language sql
as $$
  select case when should_stop then 'stop: ' || reason else 'go on' || coalesce(reason, '') end
  from pgflow.heartbeat(pg_temp.id(name))
$$;

create function pg_temp.standing(name text)
returns text
language sql
as $$
  select coalesce((select errcode || ': ' || reason from pgflow.worker_standing(pg_temp.id(name))), 'fine')
$$;

select pgflow.register_worker(pg_temp.id('w'), 'fn', 'f', 'a');
select pg_temp.silence('w', '1 hour');
select is(pg_temp.answer('w'), 'go on', 'a healthy worker goes on');
select is(pg_temp.standing('w'), 'fine', 'in good standing');
select ok(
  (select pgflow.worker_is_live(worker) from pgflow.workers as worker where worker.worker_id = pg_temp.id('w')),
  'and its heartbeat made it live again'
);

select is(
  pg_temp.answer('nobody'), format('stop: worker %s is not known', pg_temp.id('nobody')), 'an unknown worker stops'
);
select is(pg_temp.standing('nobody'), format('PF013: worker %s is not known', pg_temp.id('nobody')), 'for PF013');
select results_eq(
  'select * from pgflow.heartbeat(null)', $$values (true, 'worker null is not known')$$, 'and so does one without an id'
);
select is((select count(*) from pgflow.workers), 1::bigint, 'a heartbeat makes no worker');

-- The function.
select pgflow.disable_worker_function('fn', 'it spoils orders');
select is(pg_temp.answer('w'), 'stop: function "fn" is disabled: it spoils orders', 'a worker of a disabled function stops');
select is(pg_temp.standing('w'), 'PF012: function "fn" is disabled: it spoils orders', 'for PF012');
update pgflow.worker_functions set disabled_reason = null where function_name = 'fn';
select is(
  pg_temp.answer('w'), 'stop: function "fn" is disabled: no reason was recorded', 'enabled alone decides, not the reason'
);
select pgflow.enable_worker_function('fn');
select is(pg_temp.answer('w'), 'go on', 'enabled again, it goes on');
delete from pgflow.worker_functions;
select is(pg_temp.answer('w'), 'go on', 'a function that is not known stops nobody');

-- The worker itself.
update pgflow.workers set deprecated_at = '2026-01-01 00:00:00+00' where worker_id = pg_temp.id('w');
select alike(pg_temp.answer('w'), 'stop: it was deprecated at %', 'a deprecated worker stops');
update pgflow.workers set stop_reason = 'enough' where worker_id = pg_temp.id('w');
select is(pg_temp.answer('w'), 'stop: it was told to stop: enough', 'an order to stop says more than that');
select pgflow.mark_worker_stopped(pg_temp.id('w'));
select alike(pg_temp.standing('w'), 'PF013: it was stopped at %', 'and that it has stopped comes first');

-- The flow.
select pgflow.register_worker(pg_temp.id('v'), 'fn', 'f', 'a');
select pgflow.ensure_flow_compiled('f', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b')), true, 'step');
select alike(
  pg_temp.standing('v'), 'PF013: flow "f" was recompiled: the worker is of generation %', 'an older generation is PF013'
);
select alike(pg_temp.answer('v'), 'stop: flow "f" was recompiled: %', 'and stops');
select pgflow.register_worker(pg_temp.id('d'), 'fn', 'doomed', 'a');
select pgflow.delete_flow_and_data('doomed');
select is(pg_temp.answer('d'), 'stop: flow "doomed" is gone', 'a worker whose flow is gone stops');
select is(pg_temp.standing('d'), 'PF013: flow "doomed" is gone', 'for PF013');

-- Workers of pgflow 0.14 have no subscription.
select pg_temp.old_worker('old', 'plain');
select is(pg_temp.answer('old'), 'go on', 'a worker of pgflow 0.14 goes on');
select is(pg_temp.standing('old'), 'PF010: it never registered a subscription', 'though it can claim nothing by subscription');
select pgflow.track_worker_function('old');
select pgflow.disable_worker_function('old', 'no more');
select is(pg_temp.answer('old'), 'stop: function "old" is disabled: no more', 'and stops like the others');

-- Stopping twice keeps the first time.
update pgflow.workers set stopped_at = '2026-01-01 00:00:00+00' where worker_id = pg_temp.id('w');
select pgflow.mark_worker_stopped(pg_temp.id('w'));
select is(
  (select stopped_at from pgflow.workers where worker_id = pg_temp.id('w')), '2026-01-01 00:00:00+00'::timestamptz,
  'a worker stops once'
);

select * from finish();
rollback;
