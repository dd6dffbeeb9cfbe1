create view pgflow.error_codes (sqlstate, condition, meaning) as
values
(
  'PF001',
  'flow slug fits no step queue',
  'Even the shortest step queue of the flow, its slug with "__0", is longer than PGMQ allows.'
),
(
  'PF002',
  'one step''s names both too long',
  'Neither the readable queue name of a step nor the one with its index fits into what PGMQ allows.'
),
(
  'PF003',
  'two steps, one name',
  'Two steps of a flow, or their queues, have names that are equal but for case.'
),
(
  'PF004',
  'queue exists, owned by nobody',
  'PGMQ has a queue, or tables left over from one, under a name that the flow needs, and no flow owns it.'
),
(
  'PF005',
  'queue owned by another',
  'Another flow or step owns a queue that the flow needs.'
),
(
  'PF006',
  'a flow without steps can''t have step queues',
  'Step mode needs at least one step.'
),
(
  'PF007',
  'mode, route or witness mismatch',
  'The queue mode, the routes or the physical queues are not what they were when the flow was compiled, or not '
  'what the caller expects.'
),
(
  'PF008',
  'bad shape or slug',
  'The shape of a flow can''t be read, or a slug in it breaks the rules.'
),
(
  'PF009',
  'step-mode flow can''t be changed step by step',
  'Routes are only known for a complete shape, so a step-mode flow is compiled as a whole.'
),
(
  'PF010',
  'wrong subscription',
  'The queue, flow and step of a call are not the ones with which the worker registered, or the flow has the '
  'other queue mode.'
),
(
  'PF011',
  'unsupported work',
  'A warning: a batch held messages that belong to no task of the subscription. Nothing was claimed and the '
  'worker function was disabled.'
),
(
  'PF012',
  'worker function disabled',
  'pgflow, an operator or a fence disabled the function, so its workers may neither register nor claim.'
),
(
  'PF013',
  'worker may not go on',
  'The worker is stopped, unknown or of an older generation of its flow; or its flow is gone.'
),
(
  'PF014',
  'step selection missing, unknown or not allowed',
  'A step-mode flow needs a step of its own to be selected; a flow-mode flow takes none.'
),
(
  'PF015',
  'flow-mode slug too long for its queue',
  'The slug is a valid one, but the flow''s queue takes its name from it and PGMQ allows fewer characters.'
),
(
  'PF016',
  'not granted',
  'The calling role lacks a grant for what it asked for.'
),
(
  'PF017',
  'lock table full',
  'Making queues takes many locks, and the server ran out of room for them.'
),
(
  'PF018',
  'unknown flow, run, step or task',
  'Something was named that is not there; slugs are case-sensitive.'
),
(
  'PF019',
  'bad argument or input',
  'An argument is missing, of the wrong kind or out of range, or a run''s input is not what its flow needs.'
),
(
  'PF020',
  'pgflow schema is occupied',
  'The extension can''t be created here: objects of others are in its schema, or PGMQ is too old.'
);

comment on view pgflow.error_codes is
'Every SQLSTATE that this extension raises itself. MESSAGE names the thing, DETAIL has the figures, HINT says what to do.';
comment on column pgflow.error_codes.sqlstate is 'The five characters that clients see as SQLSTATE.';
comment on column pgflow.error_codes.condition is 'The condition in a few words.';
comment on column pgflow.error_codes.meaning is 'What has happened when it is raised.';
