begin;
\ir helpers.psql
select plan(12);

select results_eq(
  format(
    'select * from pg_temp.refusal(%L)',
    format('select * from pgflow.resolve_step_queues(%L, %L)', repeat('F', 45), '{s}')
  ),
  format(
    'values (%L, %L, %L, %L)',
    'PF001',
    format('Flow "%s" cannot use per-step queues.', repeat('F', 45)),
    format('The shortest required queue "%s__0" is 48 characters; PGMQ allows at most 47.', repeat('f', 45)),
    'Shorten the concrete flow slug or use the default single queue.'
  ),
  'a flow slug of 45 characters fits no step queue, and the error names the shortest one'
);
select results_eq(
  format(
    'select sqlstate, detail from pg_temp.refusal(%L)',
    format('select * from pgflow.resolve_step_queues(%L, %L)', repeat('f', 128), '{s}')
  ),
  format(
    'values (%L, %L)',
    'PF001',
    format('The shortest required queue "%s__0" is 131 characters; PGMQ allows at most 47.', repeat('f', 128))
  ),
  'the longest flow slug is refused with its own figure'
);

select results_eq(
  format(
    'select * from pg_temp.refusal(%L)',
    format(
      'select * from pgflow.resolve_step_queues(%L, %L)',
      repeat('f', 44),
      '{a,b,c,d,e,f,g,h,i,j,deliverSlack}'
    )
  ),
  format(
    'values (%L, %L, %L, %L)',
    'PF002',
    format('Cannot derive a queue for step "deliverSlack" at index 10 in flow "%s".', repeat('f', 44)),
    'The readable name is 58 characters and the index fallback is 48; PGMQ allows at most 47.',
    'Shorten the concrete flow slug, shorten the step slug enough for the readable name, '
    'or use the default single queue.'
  ),
  'a step whose two names are both too long is refused with both figures'
);
select results_eq(
  format(
    'select sqlstate, message from pg_temp.refusal(%L)',
    format(
      'select * from pgflow.resolve_step_queues(%L, %L)',
      repeat('f', 44),
      '{a,b,c,d,e,f,g,h,i,j,first_too_long,second_too_long}'
    )
  ),
  format(
    'values (%L, %L)',
    'PF002',
    format('Cannot derive a queue for step "first_too_long" at index 10 in flow "%s".', repeat('f', 44))
  ),
  'of several such steps the first one is named'
);
select is_empty(
  format(
    'select * from pg_temp.refusal(%L)',
    format('select * from pgflow.resolve_step_queues(%L, %L)', repeat('f', 44), '{deliverSlack,a,b,c,d,e,f,g,h,i}')
  ),
  'the same step at an index of one digit is accepted'
);

-- Flow mode.

select results_eq(
  format('select * from pg_temp.refusal(%L)', format('select pgflow.create_flow(%L)', repeat('f', 60))),
  format(
    'values (%L, %L, %L, %L)',
    'PF015',
    format('Flow slug "%s" is too long for a queue name.', repeat('f', 60)),
    'The slug is 60 characters; PGMQ allows at most 47 for a queue.',
    'Shorten the flow slug to at most 47 characters.'
  ),
  'a flow-mode slug of 60 characters is refused with slug, length and limit'
);
select throws_ok(
  format('select pgflow.create_flow(%L)', repeat('f', 48)),
  'PF015', null, 'a flow-mode slug of 48 characters is refused'
);
select throws_ok(
  format('select pgflow.ensure_flow_compiled(%L, %L)', repeat('f', 48), '{"steps": []}'),
  'PF015', null, 'and so it is when it is compiled from a shape'
);
select is((select count(*) from pgflow.flows), 0::bigint, 'no flow is left behind');
select is(pg_temp.pgmq_has('%'), 'nothing', 'nor is any queue');
select lives_ok(
  format('select pgflow.create_flow(%L)', repeat('F', 47)),
  'a flow-mode slug of 47 characters is accepted'
);
select is(
  (select queue_name from pgflow.queues),
  repeat('f', 47),
  'and gives its queue the folded name, never a cut one'
);

select * from finish();
rollback;
