-- A step-mode flow takes workers for one of its steps, a flow-mode flow workers for the whole of it, and nothing between.
begin;
\ir helpers.psql

select plan(17);

select pg_temp.step_flow('Orders', 'pay', 'ship');
select pg_temp.plain_flow('plain', 'a', 'b');

select results_eq(
  $$
    select worker_id, queue_name, function_name, flow_slug, step_slug, stopped_at, stop_reason
    from pgflow.register_worker(pg_temp.id('w'), 'orders-pay', 'Orders', 'pay')
  $$,
  $$
    values (pg_temp.id('w'), 'orders__pay', 'orders-pay', 'Orders', 'pay', null::timestamptz, null::text)
  $$,
  'a step worker is registered on the private queue of its step'
);
select is(
  (select generation from pgflow.workers where worker_id = pg_temp.id('w')),
  (select generation from pgflow.flows where flow_slug = 'Orders'),
  'with the generation of its flow'
);
select results_eq(
  $$select queue_name, step_slug, generation from pgflow.register_worker(pg_temp.id('p'), 'plain', 'plain')$$,
  $$select 'plain', null::text, generation from pgflow.flows where flow_slug = 'plain'$$,
  'a worker of a flow-mode flow on the queue of the flow'
);
select ok(
  (select pgflow.worker_is_live(worker) from pgflow.workers as worker where worker.worker_id = pg_temp.id('w')),
  'a registered worker is live'
);
select is_empty($$select * from pgflow.worker_standing(pg_temp.id('w'))$$, 'and may go on');

-- The function's row.
select results_eq(
  $$select enabled, start_mode, last_invoked_at from pgflow.worker_functions where function_name = 'orders-pay'$$,
  $$values (true, 'process', null::timestamptz)$$,
  'a function that was not known is made, enabled, of start mode process'
);
select pgflow.track_worker_function('edge');
select pgflow.register_worker(pg_temp.id('e'), 'edge', 'Orders', 'ship');
select is(
  (select start_mode from pgflow.worker_functions where function_name = 'edge'), 'http',
  'a null start mode keeps the one that is stored'
);
select pgflow.register_worker(pg_temp.id('e2'), 'edge', 'Orders', 'ship', 'process');
select is(
  (select start_mode from pgflow.worker_functions where function_name = 'edge'), 'process', 'another one replaces it'
);

-- Selections that are no subscription.
create temporary table staff_before as
select pg_temp.staff() as staff;

select results_eq(
  $outer$select * from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('x'), 'x', 'Orders')$$)$outer$,
  $$
    values (
      'PF014',
      'Flow "Orders" has a queue for every step: a worker must select one.',
      'Its steps: pay, ship.',
      'Pass one of them as step_slug; slugs are case-sensitive.'
    )
  $$,
  'a step-mode flow needs a step, and the refusal lists the valid ones in order'
);
select results_eq(
  $outer$
    select sqlstate, message, detail
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('x'), 'x', 'Orders', 'sip')$$)
  $outer$,
  $$values ('PF014', 'Flow "Orders" has no step "sip".', 'Its steps: pay, ship.')$$,
  'an unknown step is refused'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'x', 'Orders', 'Pay')$$,
  'PF014', 'Flow "Orders" has no step "Pay".', 'and so is one in another case'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'x', 'Orders', e'pay\n')$$,
  'PF014', null, 'and one with a line break behind it'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'x', 'Orders', '')$$, 'PF014', null, 'and an empty one'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'x', 'Orders', '''; drop table pgflow.workers; --')$$,
  'PF014', null, 'and one that is SQL'
);
select results_eq(
  $outer$
    select sqlstate, message, detail
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('x'), 'x', 'plain', 'a')$$)
  $outer$,
  $$values ('PF014', 'Flow "plain" is in flow mode: its workers select no step.', 'Its steps: a, b.')$$,
  'a flow-mode flow refuses even one of its steps'
);
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('x'), 'x', 'orders', 'pay')$$,
  'PF018', 'Flow "orders" is not known.', 'a flow in another case is another flow'
);
select is(pg_temp.staff(), (select staff from staff_before), 'none of these left a row');

select * from finish();
rollback;
