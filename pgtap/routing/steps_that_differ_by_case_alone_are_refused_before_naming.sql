begin;
\ir helpers.psql
select plan(9);

select results_eq(
  $outer$
    select *
    from pg_temp.refusal($$ select * from pgflow.resolve_step_queues('f', array['a', 'Load', 'b', 'load']) $$)
  $outer$,
  $$
    values (
      'PF003',
      'Steps "Load" and "load" of flow "f" cannot both have a queue.',
      'They are at index 1 and 3; queue names are lower case, so both slugs stand for the same name.',
      'Give the steps slugs that differ in more than case.'
    )
  $$,
  'two steps that differ by case are refused, naming both'
);
select throws_ok(
  $$ select * from pgflow.resolve_step_queues('f', array['load', 'load']) $$,
  'PF003', 'Steps "load" and "load" of flow "f" cannot both have a queue.',
  'so are two steps with the very same slug'
);
select throws_ok(
  format(
    'select * from pgflow.resolve_step_queues(%L, array[%L, %L])',
    repeat('f', 44), 'S' || repeat('x', 19), 's' || repeat('x', 19)
  ),
  'PF003', null, 'long twins are refused, although their index names would differ'
);
select throws_ok(
  format('select * from pgflow.resolve_step_queues(%L, %L)', repeat('f', 45), '{a,A}'),
  'PF003', null, 'twins are found before the flow slug is found to be too long'
);
select throws_ok(
  $$
    select pgflow.ensure_flow_compiled(
      'f', pg_temp.shape(pg_temp.step('load'), pg_temp.step('Load')), false, 'step'
    )
  $$,
  'PF003', null, 'a step-mode flow with twins is not compiled'
);
select is_empty(
  $$ select from pgflow.flows union all select from pgflow.queues $$,
  'and nothing of it is left'
);

-- Names that are different for a flow, but not for PGMQ.

select results_eq(
  $outer$
    select sqlstate, message
    from pg_temp.refusal(
      $$
        select pgflow.ensure_flow_compiled(
          'f', pg_temp.shape(pg_temp.step('load'), pg_temp.step('load_vt_idx')), false, 'step'
        )
      $$
    )
  $outer$,
  $$ values ('PF003', 'Queues "f__load" and "f__load_vt_idx" of flow "f" cannot both be made.') $$,
  'a queue whose table would have the name of another one''s index is refused'
);
select is(pg_temp.pgmq_has('%'), 'nothing', 'before any queue is made');
select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('load'), pg_temp.step('Load'), pg_temp.step('load_vt_idx')), 'flow'),
  'compiled',
  'in flow mode such steps share the one queue and are accepted'
);

select * from finish();
rollback;
