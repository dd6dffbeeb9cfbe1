begin;
\ir helpers.psql
select plan(13);

select results_eq(
  $$ select * from pgflow.resolve_step_queues('communityThreadsV1', array['classify', 'deliverSlack']) $$,
  $$
    values
    (0, 'classify', 'communitythreadsv1__classify', 'readable'),
    (1, 'deliverSlack', 'communitythreadsv1__deliverslack', 'readable')
  $$,
  'a queue is named by flow and step, in lower case, in step order'
);
select results_eq(
  $$
    select step_index, queue_name, resolution
    from pgflow.resolve_step_queues('short', array['a', 'b', 'c', repeat('x', 100), 'e'])
  $$,
  $$
    values
    (0, 'short__a', 'readable'),
    (1, 'short__b', 'readable'),
    (2, 'short__c', 'readable'),
    (3, 'short__3', 'fallback'),
    (4, 'short__e', 'readable')
  $$,
  'only the step whose readable name is too long gets its index instead'
);

-- The boundaries, with a flow slug of 44 characters: two underscores and one more character fit.

select results_eq(
  $$
    select step_index, length(queue_name), resolution
    from pgflow.resolve_step_queues(repeat('f', 44), array['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 's'])
    where step_index = 10
  $$,
  $$ values (10, 47, 'readable') $$,
  'a readable name of 47 characters is kept, at index 10 too'
);
select results_eq(
  $$
    select step_index, queue_name, resolution
    from pgflow.resolve_step_queues(
      repeat('f', 44), array['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', repeat('s', 20)]
    )
    where step_index = 9
  $$,
  $$ values (9, repeat('f', 44) || '__9', 'fallback') $$,
  'a fallback of 47 characters is taken when the readable name has 48 or more'
);
select results_eq(
  $$ select length(queue_name), resolution from pgflow.resolve_step_queues(repeat('f', 43), array['ab', 'abc']) $$,
  $$ values (47, 'readable'), (46, 'fallback') $$,
  '47 characters are readable, the 48th leads to the index'
);
select results_eq(
  $$
    select count(*), max(length(queue_name)), count(distinct queue_name)
    from pgflow.resolve_step_queues('f', array(select 's' || repeat('x', 60) || position from generate_series(1, 5000) as position))
  $$,
  $$ values (5000::bigint, 7, 5000::bigint) $$,
  'there is no limit on the number of steps'
);

-- Folding.

select results_eq(
  $$ select queue_name from pgflow.resolve_step_queues('TITLE_I', array['INDEX', 'Iota_I']) $$,
  $$ values ('title_i__index'), ('title_i__iota_i') $$,
  'capital letters fold by the rules of ASCII'
);
select results_eq(
  $$ select queue_name from pgflow.resolve_step_queues('a', '[7:8]={x,y}'::text[]) $$,
  $$ values ('a__x'), ('a__y') $$,
  'the bounds of the array do not matter: indexes count from zero'
);

-- Routes of both modes.

select results_eq(
  $$ select * from pgflow.flow_routes('Orders', 'step', array['Pick', 'pack']) $$,
  $$ values (0, 'Pick', 'orders__pick'), (1, 'pack', 'orders__pack') $$,
  'in step mode every step has its own route'
);
select results_eq(
  $$ select * from pgflow.flow_routes('Orders', 'flow', array['Pick', 'pick']) $$,
  $$ values (0, 'Pick', 'orders'), (1, 'pick', 'orders') $$,
  'in flow mode every step has the same route, and slugs that differ by case are two steps'
);
select is_empty(
  $$ select * from pgflow.flow_routes('Orders', 'flow', '{}') $$,
  'in flow mode a flow without steps has no routes'
);
select results_eq(
  $$ select * from pgflow.queues_to_own('Orders', 'flow', '{}') $$,
  $$ values ('orders', null::text) $$,
  'but it has its queue'
);

-- The function itself.

select results_eq(
  $$
    select proc.provolatile::text, proc.proisstrict, proc.proretset
    from pg_proc as proc
    where proc.oid = 'pgflow.resolve_step_queues(text, text[])'::regprocedure
  $$,
  $$ values ('i', false, true) $$,
  'resolve_step_queues is immutable and not strict'
);

select * from finish();
rollback;
