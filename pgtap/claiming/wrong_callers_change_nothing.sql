-- Calls that a claim refuses, each before any message changes.
begin;
\ir helpers.psql

select plan(58);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.compile('h', 'step', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'r');
select pg_temp.start('g', 's');
select pg_temp.start('h', 't');

create temporary table picture_before as
select pg_temp.picture('f') || pg_temp.picture('g') || pg_temp.picture('h') as picture;

-- One refusal: the error, and that all of the three flows is as it was.
create function pg_temp.refused(call text, errcode text, description text)
returns setof text
language plpgsql
as $$
begin
  return next throws_ok(call, errcode, null, description);
  return next is(
    pg_temp.picture('f') || pg_temp.picture('g') || pg_temp.picture('h'),
    (select before.picture from picture_before as before),
    '... and nothing has changed'
  );
end
$$;

-- Selecting a step.
select pg_temp.refused(
  $$select pgflow.start_tasks('f', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'start_tasks() has no step to claim for in a step-mode flow'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', null, array[1], pg_temp.worker('f', 'a'))$$, 'PF010', 'a claim names no step'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', 'c', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim names an unknown step'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', 'A', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim names the step in another case'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'F', 'a', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim names the flow in another case'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('F__A', 'f', 'a', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim names the queue in another case'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', 'b', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim names another step'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__b', 'f', 'b', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim is of another step''s subscription'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__b', 'f', 'a', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim names another step''s queue'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('h__a', 'h', 'a', array[1], pg_temp.worker('f', 'a'))$$, 'PF010',
  'a claim is of another flow''s subscription'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks(null, null, null, array[1], pg_temp.worker('f', 'a'))$$, 'PF010', 'a claim names nothing'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('g', 'g', 'a', array[1], pg_temp.worker('g'))$$, 'PF010',
  'a claim selects a step of a flow-mode flow'
);
select pg_temp.refused(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'f')$$, 'PF014',
  'a worker of a step-mode flow registers without a step'
);
select pg_temp.refused(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'f', 'c')$$, 'PF014',
  'a worker registers for an unknown step'
);
select pg_temp.refused(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'f', 'A')$$, 'PF014',
  'a worker registers for a step in another case'
);
select pg_temp.refused(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'f', '')$$, 'PF014',
  'a worker registers for a step without a name'
);
select pg_temp.refused(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'g', 'a')$$, 'PF014',
  'a worker of a flow-mode flow registers with a step'
);
select is_empty(
  $$select * from pgflow.worker_functions where function_name = 'fn'$$,
  'a refused registration leaves no function'
);
select throws_like(
  $$select pgflow.register_worker(gen_random_uuid(), 'fn', 'f')$$, '%"f"%', 'the refusal names the flow'
);

-- Standing of the worker.
select pg_temp.refused(
  $$select pgflow.poll_tasks(gen_random_uuid(), 1, 0)$$, 'PF013', 'an unknown worker polls'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', 'a', array[1], gen_random_uuid())$$, 'PF013', 'an unknown worker claims'
);
select pg_temp.refused(
  $$select pgflow.poll_tasks(null, 1, 0)$$, 'PF013', 'a worker without an id polls'
);

insert into pgflow.workers (worker_id, queue_name, function_name)
values (pg_temp.id('of 0.14'), 'f__a', 'old_fn');
select pg_temp.refused(
  $$select pgflow.poll_tasks(pg_temp.id('of 0.14'), 1, 0)$$, 'PF010', 'a worker that wrote its own row polls'
);
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', 'a', array[1], pg_temp.id('of 0.14'))$$, 'PF010', 'or claims'
);

select pgflow.register_worker(pg_temp.id('stopped'), 'f_a', 'f', 'a');
select pgflow.mark_worker_stopped(pg_temp.id('stopped'));
select pg_temp.refused($$select pgflow.poll_tasks(pg_temp.id('stopped'), 1, 0)$$, 'PF013', 'a stopped worker polls');
select pg_temp.refused(
  $$select pgflow.claim_tasks('f__a', 'f', 'a', array[1], pg_temp.id('stopped'))$$, 'PF013', 'or claims'
);

select pgflow.disable_worker_function('f_a', 'the night shift is over');
select pg_temp.refused(
  $$select * from pg_temp.claim('f', 'a')$$, 'PF012', 'a worker of a disabled function polls'
);
select throws_like(
  $$select * from pg_temp.claim_messages('f', 'a', array[1])$$, '%night shift%', 'or claims: the error gives the reason'
);
select pgflow.enable_worker_function('f_a');

update pgflow.workers
set generation = generation - 1
where worker_id = pg_temp.worker('h', 'a');
select pg_temp.refused(
  $$select * from pg_temp.claim('h', 'a')$$, 'PF013', 'a worker of an older generation polls'
);
select pg_temp.refused(
  $$select * from pg_temp.claim_messages('h', 'a', array[1])$$, 'PF013', 'or claims'
);

-- All are refused, the right one is not.
select results_eq(
  $$select outcome from pg_temp.claim_messages('f', 'a', array[1])$$, array['claimed'],
  'the messages could be claimed all along'
);

select *
from finish();
rollback;
