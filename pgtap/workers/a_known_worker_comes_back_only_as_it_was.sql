-- Registering again is harmless for the same subscription, and refused for anything else.
begin;
\ir helpers.psql

select plan(16);

select pg_temp.step_flow('f', 'a', 'b');
select pg_temp.step_flow('g', 'a');
select pgflow.register_worker(pg_temp.id('w'), 'fn', 'f', 'a');
select pg_temp.silence('w', '1 hour');

create temporary table registered as
select * from pgflow.workers where worker_id = pg_temp.id('w');

select results_eq(
  $$
    select queue_name, function_name, started_at, flow_slug, step_slug, generation
    from pgflow.register_worker(pg_temp.id('w'), 'fn', 'f', 'a')
  $$,
  $$select queue_name, function_name, started_at, flow_slug, step_slug, generation from registered$$,
  'the same subscription gives the same row'
);
select ok(
  (select last_heartbeat_at from pgflow.workers where worker_id = pg_temp.id('w'))
  > (select last_heartbeat_at from registered),
  'and counts as a heartbeat'
);

select results_eq(
  $outer$
    select sqlstate, message, detail
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('w'), 'fn', 'f', 'b')$$)
  $outer$,
  $$
    values (
      'PF010',
      format('Worker %s is known already and can''t be registered like this.', pg_temp.id('w')),
      'It registered as function "fn" for queue "f__a", flow f, step a.'
    )
  $$,
  'another step is refused, with what the worker registered for'
);
select throws_ok($$select pgflow.register_worker(pg_temp.id('w'), 'fn', 'g', 'a')$$, 'PF010', null, 'another flow too');
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('w'), 'other', 'f', 'a')$$, 'PF010', null, 'and another function'
);
select is_empty($$select * from pgflow.worker_functions where function_name = 'other'$$, 'which is not made');

-- Told to stop, in each of the ways.
select pgflow.mark_worker_stopped(pg_temp.id('w'));
select results_eq(
  $outer$
    select sqlstate, detail ~ '; it was stopped at '
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('w'), 'fn', 'f', 'a')$$)
  $outer$,
  $$values ('PF010', true)$$,
  'a worker that stopped is refused'
);
select lives_ok(
  $$select pgflow.register_worker(pg_temp.id('w2'), 'fn', 'f', 'a')$$, 'its successor registers under an id of its own'
);
update pgflow.workers set deprecated_at = now() where worker_id = pg_temp.id('w2');
select throws_ok($$select pgflow.register_worker(pg_temp.id('w2'), 'fn', 'f', 'a')$$, 'PF010', null, 'a deprecated one is refused');
select pgflow.register_worker(pg_temp.id('w3'), 'fn', 'f', 'a');
update pgflow.workers set stop_reason = 'enough' where worker_id = pg_temp.id('w3');
select results_eq(
  $outer$
    select sqlstate, detail ~ '; it was told to stop: enough'
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('w3'), 'fn', 'f', 'a')$$)
  $outer$,
  $$values ('PF010', true)$$,
  'one that was told to stop is refused'
);

-- An older generation.
select pgflow.register_worker(pg_temp.id('w4'), 'fn', 'f', 'a');
select pgflow.ensure_flow_compiled('f', pg_temp.shape(pg_temp.step('a')), true, 'step');
update pgflow.workers set stop_reason = null where worker_id = pg_temp.id('w4');
select throws_ok(
  $$select pgflow.register_worker(pg_temp.id('w4'), 'fn', 'f', 'a')$$,
  'PF010', null, 'one of an older generation of its flow is refused'
);
select lives_ok($$select pgflow.register_worker(pg_temp.id('w5'), 'fn', 'f', 'a')$$, 'a new one is welcome');
select is(
  (select generation from pgflow.workers where worker_id = pg_temp.id('w5')),
  (select generation from pgflow.flows where flow_slug = 'f'),
  'and is of the new generation'
);

-- A worker of pgflow 0.14.
select pg_temp.plain_flow('plain', 'a');
select pg_temp.old_worker('old', 'plain');
select results_eq(
  $outer$
    select sqlstate, detail
    from pg_temp.refusal($$select pgflow.register_worker(pg_temp.id('old'), 'old', 'plain')$$)
  $outer$,
  $$
    values (
      'PF010',
      'It registered as function "old" for queue "plain", flow none, step none; it never registered a subscription.'
    )
  $$,
  'a worker that wrote its row itself can''t turn it into a registration'
);

-- Two functions may serve one step, and one function many.
select lives_ok($$select pgflow.register_worker(pg_temp.id('w6'), 'fn', 'g', 'a')$$, 'a function may serve several flows');
select is(
  (select count(*) from pgflow.queue_workers where queue_name = 'f__a' and is_serving), 1::bigint,
  'of all these one serves the queue of the step'
);

select * from finish();
rollback;
