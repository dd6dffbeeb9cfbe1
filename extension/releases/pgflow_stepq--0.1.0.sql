\echo Use "CREATE EXTENSION pgflow_stepq" to load this file. \quit

-- An adopted or half-removed installation must be noticed before the first object is made: CREATE would
-- otherwise stop in the middle with an error about one of its tables.
do $refuse_occupied_schema$
declare
  occupants text[];
begin
  select array_agg(object.name order by object.name)
  into occupants
  from (
    select class.relname::text as name
    from pg_catalog.pg_class as class
    where class.relnamespace = 'pgflow'::regnamespace
    union
    select proc.oid::regprocedure::text
    from pg_catalog.pg_proc as proc
    where proc.pronamespace = 'pgflow'::regnamespace
    union
    select type.typname::text
    from pg_catalog.pg_type as type
    where type.typnamespace = 'pgflow'::regnamespace
  ) as object;

  if occupants is not null then
    raise exception using
      errcode = 'PF020',
      message = 'Schema "pgflow" is occupied.',
      detail = format(
        'It holds %s objects that are not of this extension: %s%s.',
        cardinality(occupants),
        array_to_string(occupants[1:5], ', '),
        case when cardinality(occupants) > 5 then ', ...' else '' end
      ),
      hint = 'Drop or rename what is there. An installed pgflow 0.14 is adopted, with its data, by '
        'CREATE EXTENSION pgflow_stepq VERSION ''pgflow014'' in releases that carry that path.';
  end if;
end
$refuse_occupied_schema$;

-- Queue tables of older releases differ (no last_read_at, or members of the extension that dumps leave out).
do $refuse_old_pgmq$
declare
  installed text;
begin
  select extension.extversion
  into installed
  from pg_catalog.pg_extension as extension
  where extension.extname = 'pgmq';

  if installed !~ '^[0-9]+[.][0-9]+' or (regexp_match(installed, '^([0-9]+)[.]([0-9]+)'))::int[] < array[1, 11] then
    raise exception using
      errcode = 'PF020',
      message = format('pgmq %s is too old for pgflow_stepq.', installed),
      detail = 'pgflow_stepq needs pgmq 1.11 or newer.',
      hint = 'Run ALTER EXTENSION pgmq UPDATE after installing a newer pgmq, then create the extension again.';
  end if;
end
$refuse_old_pgmq$;

create function pgflow.is_valid_slug(slug text)
returns boolean
language sql
immutable
parallel safe
begin atomic
  -- PostgreSQL's $ is the very end: a slug that ends in a line break is not a slug.
  select
    slug is not null
    and length(slug) between 1 and 128
    and slug collate "C" ~ '^[a-zA-Z_][a-zA-Z0-9_]*$'
    and slug <> 'run';
end;

comment on function pgflow.is_valid_slug(text) is
'Whether a text can name a flow or a step: 1 to 128 ASCII letters, digits or underscores, not starting with a digit, and not the word run. Null gives false. The rule is that of pgflow 0.14.';

create function pgflow.flow_key(flow_slug text)
returns bigint
language sql
immutable
parallel safe
begin atomic
  -- Not the key of lock_slug(): verifying a flow, as every worker does when it starts, must not hold up its work.
  select hashtextextended('pgflow.use ' || flow_key.flow_slug, 0);
end;

comment on function pgflow.flow_key(text) is
'Internal: the key of the advisory lock that comes first in the order of locks. Whoever starts, claims, finishes, extends, requeues, prunes or registers holds it shared to the end of the transaction; take_flow() takes it alone. A row lock would not do: those who share it never queue up behind one who waits to have it alone, so on a busy flow he would wait for ever.';

create type pgflow.message_ref as (
  queue_name text,
  msg_id bigint
);

comment on type pgflow.message_ref is 'Internal: names a message. Ids are counted per queue, so an id alone names nothing.';

create table pgflow.flows (
  flow_slug text not null primary key,
  opt_max_attempts int not null default 3,
  opt_base_delay int not null default 1,
  opt_timeout int not null default 60,
  created_at timestamptz not null default now(),
  queue_mode text not null default 'flow',
  generation int not null,
  constraint slug_is_valid check (pgflow.is_valid_slug(flow_slug)),
  constraint opt_max_attempts_is_nonnegative check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive check (opt_timeout > 0),
  constraint queue_mode_is_known check (queue_mode in ('flow', 'step'))
);

select pg_catalog.pg_extension_config_dump('pgflow.flows', '');

comment on table pgflow.flows is 'One row a flow: its runtime options and its deployment metadata.';
comment on column pgflow.flows.opt_max_attempts is 'How often a task is started at most; steps may override it.';
comment on column pgflow.flows.opt_base_delay is 'Base of the exponential retry delay, in seconds.';
comment on column pgflow.flows.opt_timeout is 'How long an attempt may take before its lease can be taken away, in seconds.';
comment on column pgflow.flows.queue_mode is 'flow: one queue for all steps. step: a private queue for every step. Never part of the shape.';
comment on column pgflow.flows.generation is 'Fences workers of an older definition: new at every destructive recompilation, never used again for this slug.';

-- One sequence for all flows, so that a generation stays unused even after its flow was deleted.
create sequence pgflow.flow_generations as int;

select pg_catalog.pg_extension_config_dump('pgflow.flow_generations', '');

comment on sequence pgflow.flow_generations is 'Where generations of flows come from.';

alter table pgflow.flows alter column generation set default nextval('pgflow.flow_generations');

create table pgflow.queues (
  queue_name text not null primary key,
  flow_slug text not null,
  step_slug text,
  physical_created_at timestamptz not null,
  constraint queue_name_is_canonical check (
    queue_name = lower(queue_name collate "C") and length(queue_name) between 1 and 47
  )
);

create index queues_of_flow on pgflow.queues (flow_slug);

select pg_catalog.pg_extension_config_dump('pgflow.queues', '');

comment on table pgflow.queues is
'Who owns a physical queue. A queue belongs to one flow, and in step mode to one step of it.';
comment on column pgflow.queues.step_slug is 'The one step that the queue is private to; null: every step of a flow-mode flow.';
comment on column pgflow.queues.physical_created_at is
'Copy of pgmq.meta.created_at; a difference means that somebody dropped and made the queue again.';

create table pgflow.steps (
  flow_slug text not null references pgflow.flows (flow_slug),
  step_slug text not null,
  step_type text not null default 'single',
  step_index int not null default 0,
  deps_count int not null default 0,
  opt_max_attempts int,
  opt_base_delay int,
  opt_timeout int,
  opt_start_delay int,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb,
  when_unmet text not null default 'skip',
  when_exhausted text not null default 'fail',
  created_at timestamptz not null default now(),
  queue_name text not null references pgflow.queues (queue_name),
  primary key (flow_slug, step_slug),
  -- The index first: the other way round it would look as fit as the primary key for finding a step by its slug, and
  -- read all steps of the flow.
  constraint steps_flow_slug_step_index_key unique (step_index, flow_slug),
  constraint steps_step_slug_check check (pgflow.is_valid_slug(step_slug)),
  constraint step_type_is_known check (step_type in ('single', 'map')),
  constraint deps_count_is_nonnegative check (deps_count >= 0),
  constraint opt_max_attempts_is_nonnegative check (opt_max_attempts >= 0),
  constraint opt_base_delay_is_nonnegative check (opt_base_delay >= 0),
  constraint opt_timeout_is_positive check (opt_timeout > 0),
  constraint opt_start_delay_is_nonnegative check (opt_start_delay >= 0),
  constraint required_input_pattern_is_object check (jsonb_typeof(required_input_pattern) = 'object'),
  constraint forbidden_input_pattern_is_object check (jsonb_typeof(forbidden_input_pattern) = 'object'),
  constraint when_unmet_is_valid check (when_unmet in ('fail', 'skip', 'skip-cascade')),
  constraint when_exhausted_is_valid check (when_exhausted in ('fail', 'skip', 'skip-cascade'))
);

select pg_catalog.pg_extension_config_dump('pgflow.steps', '');

comment on table pgflow.steps is 'One row a step of a flow, with its route.';
comment on column pgflow.steps.step_index is 'Zero-based position in the flow.';
comment on column pgflow.steps.opt_max_attempts is 'Null: the flow''s.';
comment on column pgflow.steps.opt_base_delay is 'Seconds. Null: the flow''s.';
comment on column pgflow.steps.opt_timeout is 'Seconds. Null: the flow''s.';
comment on column pgflow.steps.opt_start_delay is 'Seconds between the moment a step becomes ready and the moment its tasks can be claimed. Null: 0.';
comment on column pgflow.steps.queue_name is 'The route: the queue that messages of this step are sent to.';

create table pgflow.deps (
  flow_slug text not null references pgflow.flows (flow_slug),
  dep_slug text not null,
  step_slug text not null,
  created_at timestamptz not null default now(),
  primary key (flow_slug, dep_slug, step_slug),
  constraint deps_check check (dep_slug <> step_slug),
  constraint deps_flow_slug_dep_slug_fkey foreign key (flow_slug, dep_slug)
  references pgflow.steps (flow_slug, step_slug),
  constraint deps_flow_slug_step_slug_fkey foreign key (flow_slug, step_slug)
  references pgflow.steps (flow_slug, step_slug)
);

-- The primary key answers "who depends on this step"; this one answers "what does this step depend on", and with the
-- step first it is never taken for the other question.
create index deps_of_step on pgflow.deps (step_slug, flow_slug);

select pg_catalog.pg_extension_config_dump('pgflow.deps', '');

comment on table pgflow.deps is 'One row a dependency: step_slug waits for dep_slug.';

create table pgflow.runs (
  run_id uuid not null default gen_random_uuid() primary key,
  flow_slug text not null references pgflow.flows (flow_slug),
  status text not null default 'started',
  input jsonb not null,
  output jsonb,
  remaining_steps int not null default 0,
  started_at timestamptz not null default now(),
  completed_at timestamptz,
  failed_at timestamptz,
  constraint status_is_valid check (status in ('started', 'completed', 'failed')),
  constraint remaining_steps_is_nonnegative check (remaining_steps >= 0),
  constraint completed_at_or_failed_at check (completed_at is null or failed_at is null)
);

create index runs_of_flow on pgflow.runs (flow_slug);

select pg_catalog.pg_extension_config_dump('pgflow.runs', '');

comment on table pgflow.runs is 'One row a run of a flow.';
comment on column pgflow.runs.output is 'Output of every completed step without dependents, by slug; set when the run completes.';

create table pgflow.step_states (
  flow_slug text not null,
  run_id uuid not null references pgflow.runs (run_id),
  step_slug text not null,
  status text not null default 'created',
  remaining_tasks int,
  initial_tasks int,
  remaining_deps int not null default 0,
  output jsonb,
  error_message text,
  skip_reason text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  completed_at timestamptz,
  failed_at timestamptz,
  skipped_at timestamptz,
  primary key (run_id, step_slug),
  constraint status_is_valid check (status in ('created', 'started', 'completed', 'failed', 'skipped')),
  constraint remaining_tasks_is_nonnegative check (remaining_tasks >= 0),
  constraint initial_tasks_is_nonnegative check (initial_tasks >= 0),
  constraint remaining_deps_is_nonnegative check (remaining_deps >= 0),
  constraint remaining_tasks_state_consistency check (remaining_tasks is null or status <> 'created'),
  constraint output_only_for_completed_or_null check (output is null or status = 'completed'),
  constraint skip_reason_matches_status check ((status = 'skipped') = (skip_reason is not null)),
  constraint skip_reason_is_known check (
    skip_reason in ('condition_unmet', 'handler_failed', 'dependency_skipped')
  )
) with (fillfactor = 80);

select pg_catalog.pg_extension_config_dump('pgflow.step_states', '');

comment on table pgflow.step_states is 'One row a step of a run.';
comment on column pgflow.step_states.remaining_tasks is 'Tasks without a result yet; null until the step started, and for skipped ones.';
comment on column pgflow.step_states.initial_tasks is 'Tasks the step will have: 1 for a single step, the length of its input for a map; null while that is unknown.';

create table pgflow.workers (
  worker_id uuid not null primary key,
  queue_name text not null,
  function_name text not null,
  started_at timestamptz not null default now(),
  deprecated_at timestamptz,
  stopped_at timestamptz,
  last_heartbeat_at timestamptz not null default now(),
  flow_slug text,
  step_slug text,
  generation int,
  stop_reason text
);

create index workers_of_queue on pgflow.workers (queue_name);
create index workers_of_function on pgflow.workers (function_name);

select pg_catalog.pg_extension_config_dump('pgflow.workers', '');

comment on table pgflow.workers is 'One row a worker that registered, or that wrote its own row as the workers of pgflow 0.14 do.';
comment on column pgflow.workers.deprecated_at is 'Set when the worker was asked to finish what it has and stop.';
comment on column pgflow.workers.flow_slug is 'With step_slug and queue_name the exact subscription; null for workers of pgflow 0.14.';
comment on column pgflow.workers.step_slug is 'Null: a flow-mode flow''s whole queue.';
comment on column pgflow.workers.generation is 'The flow''s generation when the worker registered; an older one can claim nothing.';
comment on column pgflow.workers.stop_reason is 'Why the worker was told to stop; set by the server.';

create table pgflow.worker_functions (
  function_name text not null primary key,
  enabled boolean not null default true,
  debounce interval not null default interval '6 seconds',
  last_invoked_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  start_mode text not null default 'http',
  disabled_at timestamptz,
  disabled_reason text,
  constraint debounce_is_at_least_a_second check (debounce >= interval '1 second'),
  constraint start_mode_is_known check (start_mode in ('http', 'process'))
);

select pg_catalog.pg_extension_config_dump('pgflow.worker_functions', '');

comment on table pgflow.worker_functions is 'One row a function that workers run: whether it may, and who starts it.';
comment on column pgflow.worker_functions.enabled is 'Decides alone whether workers of this function may register, claim and be started.';
comment on column pgflow.worker_functions.debounce is 'How long ensure_workers() leaves a function alone after it called it, and how fresh a heartbeat must be for it.';
comment on column pgflow.worker_functions.start_mode is 'http: ensure_workers() calls it. process: it starts itself.';

create table pgflow.fences (
  flow_slug text not null,
  function_name text not null,
  was_enabled boolean not null,
  fenced_at timestamptz not null,
  reason text not null,
  restored_at timestamptz,
  primary key (flow_slug, function_name, fenced_at),
  constraint restored_at_is_after_fenced_at check (restored_at >= fenced_at)
);

create unique index fences_open on pgflow.fences (flow_slug, function_name) where restored_at is null;
create index fences_open_of_function on pgflow.fences (function_name) where restored_at is null;

select pg_catalog.pg_extension_config_dump('pgflow.fences', '');

comment on table pgflow.fences is
'One row for every time that a worker function was fenced with a flow; open until restored_at is set. No foreign keys: the way back must outlive a flow that is deleted behind its fence.';
comment on column pgflow.fences.was_enabled is 'What unfence_flow() restores: whether the function was enabled before the first fence that holds it.';
comment on column pgflow.fences.fenced_at is 'Also worker_functions.disabled_at of what the fence disabled, so that a later disable can be told from it.';
comment on column pgflow.fences.reason is 'What the workers and operators get to read.';

create table pgflow.step_tasks (
  flow_slug text not null,
  run_id uuid not null,
  step_slug text not null,
  message_id bigint,
  task_index int not null default 0,
  status text not null default 'queued',
  attempts_count int not null default 0,
  error_message text,
  output jsonb,
  queued_at timestamptz not null default now(),
  started_at timestamptz,
  completed_at timestamptz,
  failed_at timestamptz,
  last_worker_id uuid references pgflow.workers (worker_id) on delete set null,
  requeued_count int not null default 0,
  last_requeued_at timestamptz,
  permanently_stalled_at timestamptz,
  queue_name text not null,
  skipped_at timestamptz,
  cancelled_at timestamptz,
  lease_extended_until timestamptz,
  primary key (run_id, step_slug, task_index),
  foreign key (run_id, step_slug) references pgflow.step_states (run_id, step_slug),
  constraint message_is_named_once unique (queue_name, message_id),
  constraint status_is_valid check (
    status in ('queued', 'started', 'completed', 'failed', 'skipped', 'cancelled')
  ),
  constraint task_index_is_nonnegative check (task_index >= 0),
  constraint attempts_count_is_nonnegative check (attempts_count >= 0),
  constraint requeued_count_is_nonnegative check (requeued_count >= 0),
  constraint output_only_for_completed_or_failed check (output is null or status in ('completed', 'failed')),
  constraint skipped_at_matches_status check ((status = 'skipped') = (skipped_at is not null)),
  constraint cancelled_at_matches_status check ((status = 'cancelled') = (cancelled_at is not null))
) with (fillfactor = 70);

-- Recovery looks for started tasks only; without this it would read every task that ever ran.
create index step_tasks_started on pgflow.step_tasks (started_at) where status = 'started';

-- Deleting a worker row clears last_worker_id; without this it would read every task that ever ran.
create index step_tasks_of_worker on pgflow.step_tasks (last_worker_id);

select pg_catalog.pg_extension_config_dump('pgflow.step_tasks', '');

comment on table pgflow.step_tasks is
'One row a task: the unit that a worker claims. Its message is named by (queue_name, message_id), since ids are counted per queue.';
comment on column pgflow.step_tasks.queue_name is 'The queue that the message was sent to: a snapshot of the route, never changed.';
comment on column pgflow.step_tasks.attempts_count is 'How often the task was claimed; the fencing token of the attempt in progress.';
comment on column pgflow.step_tasks.requeued_count is 'How often the task was taken back from a lost worker.';
comment on column pgflow.step_tasks.permanently_stalled_at is 'Set when the last allowed attempt was lost with its worker.';
comment on column pgflow.step_tasks.lease_extended_until is 'Set by extend_task(), cleared at each claim.';

create function pgflow.task_is_active(status text)
returns boolean
language sql
immutable
parallel safe
begin atomic
  select status in ('queued', 'started');
end;

comment on function pgflow.task_is_active(text) is
'Whether a task of this status still has a future; every other status is terminal and never changes again.';

create type pgflow.claim_outcome as (
  msg_id bigint,
  outcome text,
  reason text,
  flow_slug text,
  run_id uuid,
  step_slug text,
  task_index int,
  attempt int,
  input jsonb,
  flow_input jsonb
);

comment on type pgflow.claim_outcome is
'What became of one message of a batch. outcome is claimed, deferred, archived, gone, unsupported or released; the columns of the task are null unless it is claimed. attempt is the fencing token to finish with.';

create type pgflow.consequences as (
  leaving pgflow.message_ref array,
  run_ids uuid array,
  step_slugs text array
);

comment on type pgflow.consequences is
'Internal: what follows when steps end. leaving: messages that must leave their queues. run_ids and step_slugs, in step: the dependents that wait for nothing any more.';

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

create function pgflow.is_trusted_schema(schema_name text)
returns boolean
language sql
stable
begin atomic
  select count(*) > 0
  from pg_namespace as namespace
  cross join pg_namespace as home
  where namespace.nspname = is_trusted_schema.schema_name
    and home.nspname = 'pgflow'
    and pg_has_role(namespace.nspowner, home.nspowner, 'member');
end;

comment on function pgflow.is_trusted_schema(text) is
'Internal: whether a schema exists and its owner has the rights of the owner of pgflow anyway (is that role, a member of it, or a superuser). Anybody who may create schemas could make one named realtime, net, vault or cron, and what stands in it would run with the rights of whoever calls the engine.';

create type pgflow.message_class as (
  msg_id bigint,
  class text,
  reason text,
  run_id uuid,
  step_slug text,
  task_index int
);

comment on type pgflow.message_class is
'What a message is to a subscription. class is claimable, started, terminal, gone or unsupported; the last three columns name its task, where it has one.';

create function pgflow.new_run_id()
returns uuid
language sql
parallel safe
begin atomic
  -- Version 7 out of a random one: milliseconds in the first 48 bits, then the two bits in which the versions differ.
  select
    encode(
      set_bit(
        set_bit(
          substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
          || substring(uuid_send(gen_random_uuid()) from 7),
          52, 1
        ),
        53, 1
      ),
      'hex'
    )::uuid;
end;

comment on function pgflow.new_run_id() is
'Internal: an id for a run, a UUID of version 7 (RFC 9562): the time in milliseconds, then 74 random bits. Ids that grow with time keep what is worked on together in the indexes, however much has ended before.';

create type pgflow.new_task as (
  run_id uuid,
  step_slug text,
  task_index int,
  start_delay int
);

comment on type pgflow.new_task is 'Internal: a task that is to be made, with the seconds until it can be claimed.';

create function pgflow.recovery_boundary(started_at timestamptz, timeout_seconds int, lease_extended_until timestamptz)
returns timestamptz
language sql
stable
parallel safe
begin atomic
  select
    greatest(started_at + make_interval(secs => timeout_seconds), lease_extended_until)
    + interval '30 seconds';
end;

comment on function pgflow.recovery_boundary(timestamptz, int, timestamptz) is
'When a started task may be taken from its worker: 30 seconds after its effective timeout, in seconds, or after its extended lease, whichever is later. Claim, deferral, extension and recovery all ask this function, so that they can''t drift apart.';

create function pgflow.refuse_queue_change()
returns trigger
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF019',
    message = format(
      'The queue of task %s of step "%s" in run %s can''t be changed.', old.task_index, old.step_slug, old.run_id
    ),
    detail = format('Its message was sent to "%s"; the update names "%s".', old.queue_name, new.queue_name),
    hint = 'step_tasks.queue_name records where the message is. A new route needs a new flow slug.';
end
$function$;

comment on function pgflow.refuse_queue_change() is
'Trigger: the queue of a task is a snapshot of where its message was sent, so an update of it would lose the message. Raises PF019.';

create trigger queue_is_a_snapshot
before update of queue_name on pgflow.step_tasks
for each row
when (old.queue_name is distinct from new.queue_name)
execute function pgflow.refuse_queue_change();

create function pgflow.refuse_unknown_flow(flow_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF018',
    message = format('Flow %s is not known.', coalesce('"' || refuse_unknown_flow.flow_slug || '"', 'null')),
    detail = format(
      'Flows with a slug like it: %s.',
      coalesce(
        (
          select string_agg(flow.flow_slug, ', ' order by flow.flow_slug collate "C")
          from pgflow.flows as flow
          where lower(flow.flow_slug collate "C") = lower(refuse_unknown_flow.flow_slug collate "C")
        ),
        'none'
      )
    ),
    hint = 'Slugs are case-sensitive. Compile the flow first: select pgflow.ensure_flow_compiled(...).';
end
$function$;

comment on function pgflow.refuse_unknown_flow(text) is
'Internal: raises PF018 for the slug of a flow that is not known, with those that differ by case alone.';

create type pgflow.step_ending as (
  run_id uuid,
  step_slug text,
  ending text,
  reason text,
  message text
);

comment on type pgflow.step_ending is
'Internal: how a step of a run ends. ending is complete, skip, skip-cascade or fail; reason is the skip_reason; message the error_message.';

create view pgflow.step_options as
select
  step.flow_slug,
  step.step_slug,
  step.step_index,
  step.step_type,
  step.queue_name,
  step.deps_count,
  step.when_unmet,
  step.when_exhausted,
  coalesce(step.opt_max_attempts, flow.opt_max_attempts) as max_attempts,
  -- Capped at a year: a larger figure is a slip, and arithmetic with it would overflow.
  least(coalesce(step.opt_base_delay, flow.opt_base_delay), 31536000) as base_delay,
  least(coalesce(step.opt_timeout, flow.opt_timeout), 31536000) as timeout,
  least(coalesce(step.opt_start_delay, 0), 31536000) as start_delay
from pgflow.steps as step
inner join pgflow.flows as flow on flow.flow_slug = step.flow_slug;

comment on view pgflow.step_options is
'The options that are in force for each step: the step''s own, else the flow''s. Delays and timeouts are in seconds, capped at a year.';

create type pgflow.step_task_record as (
  flow_slug text,
  run_id uuid,
  step_slug text,
  input jsonb,
  msg_id bigint,
  task_index int,
  flow_input jsonb
);

comment on type pgflow.step_task_record is 'What start_tasks() hands to a worker; the shape is that of pgflow 0.14.';

create type pgflow.task_result as (
  run_id uuid,
  step_slug text,
  task_index int,
  attempt int,
  kind text,
  output jsonb,
  error_message text
);

comment on type pgflow.task_result is
'Internal: a result for one task. kind is success, failure or stalled (its last allowed attempt was lost with its worker); a null attempt is not checked.';

create type pgflow.task_verdict as (
  "position" int,
  run_id uuid,
  step_slug text,
  task_index int,
  step_index int,
  queue_name text,
  message_id bigint,
  verdict text,
  output jsonb,
  error_message text,
  visible_at timestamptz,
  stalled boolean
);

comment on type pgflow.task_verdict is
'Internal: what a result means for its task. verdict is completed, violates (output of the wrong type), retrying, exhausted, superseded, ended, repeated or unknown.';

create function pgflow.worker_is_live(worker pgflow.workers, within interval default interval '30 seconds')
returns boolean
language sql
stable
parallel safe
begin atomic
  select
    (worker).stopped_at is null
    and (worker).deprecated_at is null
    and (worker).last_heartbeat_at > clock_timestamp() - within;
end;

comment on function pgflow.worker_is_live(pgflow.workers, interval) is
'Whether a worker counts as live: not stopped, not deprecated, and heard of within the given interval.';

create function pgflow.check_foreign_routes(flow_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  stray pgflow.steps;
begin
  select step.*
  into stray
  from pgflow.queues as owner
  inner join pgflow.steps as step
    on step.queue_name = owner.queue_name
    and step.flow_slug <> owner.flow_slug
  where owner.flow_slug = check_foreign_routes.flow_slug
  order by owner.queue_name collate "C", step.flow_slug collate "C", step.step_index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF007',
      message = format(
        'Queue "%s" of flow "%s" can''t be dropped: step "%s" of flow "%s" routes to it.',
        stray.queue_name,
        check_foreign_routes.flow_slug,
        stray.step_slug,
        stray.flow_slug
      ),
      detail = (select string_agg(fault.fault, ' ') from pgflow.route_faults(stray.flow_slug) as fault),
      hint = format(
        'Somebody edited the owner or the route by hand. Set it right; or, when nobody needs flow "%s", '
        'select pgflow.delete_flow_and_data(%L).',
        stray.flow_slug,
        stray.flow_slug
      );
  end if;
end
$function$;

comment on function pgflow.check_foreign_routes(text) is
'Internal: returns when no step of another flow routes to a queue that the flow owns, so that its queues can be dropped. Raises PF007, naming queue and step, with what is wrong in the other flow.';

create function pgflow.check_name_lengths(flow_slug text, step_slugs text[])
returns void
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
declare
  longest constant int := pgflow.max_queue_name_length();
  shortest_need constant text := lower((check_name_lengths.flow_slug || '__0') collate "C");
  flaw record;
begin
  if length(shortest_need) > longest then
    raise exception using
      errcode = 'PF001',
      message = format('Flow "%s" cannot use per-step queues.', check_name_lengths.flow_slug),
      detail = format(
        'The shortest required queue "%s" is %s characters; PGMQ allows at most %s.',
        shortest_need,
        length(shortest_need),
        longest
      ),
      hint = 'Shorten the concrete flow slug or use the default single queue.';
  end if;

  select
    candidate.step_index as index,
    candidate.step_slug as slug,
    length(candidate.readable) as readable_length,
    length(candidate.fallback) as fallback_length
  into flaw
  from pgflow.step_queue_candidates(check_name_lengths.flow_slug, check_name_lengths.step_slugs) as candidate
  where least(length(candidate.readable), length(candidate.fallback)) > longest
  order by candidate.step_index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF002',
      message = format(
        'Cannot derive a queue for step "%s" at index %s in flow "%s".',
        flaw.slug,
        flaw.index,
        check_name_lengths.flow_slug
      ),
      detail = format(
        'The readable name is %s characters and the index fallback is %s; PGMQ allows at most %s.',
        flaw.readable_length,
        flaw.fallback_length,
        longest
      ),
      hint = 'Shorten the concrete flow slug, shorten the step slug enough for the readable name, '
        'or use the default single queue.';
  end if;
end
$function$;

comment on function pgflow.check_name_lengths(text, text[]) is
'Internal: returns when every step of a step-mode flow has a queue name that fits. Raises PF001 (none could fit), PF002 (one step''s two names are both too long).';

create function pgflow.check_queue(queue_name text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if check_queue.queue_name is null
    or to_regclass(format('pgmq.%I', 'q_' || check_queue.queue_name)) is null then
    raise exception using
      errcode = 'PF019',
      message = format('There is no queue %s.', coalesce('"' || check_queue.queue_name || '"', 'null')),
      detail = 'PGMQ has no table ' || coalesce(format('"q_%s"', check_queue.queue_name), 'for it') || '.',
      hint = 'Pass the queue name as pgflow.queues has it, in lower case.';
  end if;
end
$function$;

comment on function pgflow.check_queue(text) is
'Internal: raises PF019 when PGMQ has no table for a queue of this (canonical) name.';

create function pgflow.check_queues(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean default false
)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  conflict record;
begin
  perform pgmq.validate_queue_name(wanted.queue_name)
  from pgflow.queues_to_own(check_queues.flow_slug, check_queues.queue_mode, check_queues.step_slugs) as wanted;

  select conflict_found.*
  into conflict
  from pgflow.queue_conflicts(
    check_queues.flow_slug,
    check_queues.queue_mode,
    check_queues.step_slugs,
    check_queues.replaces_own_queues
  ) as conflict_found
  order by conflict_found.step_index
  limit 1;

  if found then
    raise exception using
      errcode = conflict.errcode,
      message = conflict.message,
      detail = conflict.detail,
      hint = conflict.hint;
  end if;

  if check_queues.replaces_own_queues then
    perform pgflow.check_foreign_routes(check_queues.flow_slug);
  end if;
end
$function$;

comment on function pgflow.check_queues(text, text, text[], boolean) is
'Internal: the preflight of a complete flow: returns when every queue it needs is free or its own, and changes nothing. replaces_own_queues: what the flow owns now is going to be dropped first. Raises what queues_to_own() and pgmq.validate_queue_name() raise, PF004 (a queue exists and nobody owns it), PF005 (another flow or step owns it), PF007 (its own, but gone or made again by somebody), and, when the flow''s own are to be dropped, what check_foreign_routes() raises.';

create function pgflow.check_step_slugs(flow_slug text, step_slugs text[])
returns void
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
declare
  flaw record;
begin
  if coalesce(cardinality(check_step_slugs.step_slugs), 0) = 0 then
    raise exception using
      errcode = 'PF006',
      message = format('Flow "%s" has no steps, so it cannot use per-step queues.', check_step_slugs.flow_slug),
      detail = 'Per-step queues need at least one step; 0 were given.',
      hint = 'Add a step, or use the default single queue.';
  end if;

  if not pgflow.is_valid_slug(check_step_slugs.flow_slug) then
    perform pgflow.refuse_slug('Flow', check_step_slugs.flow_slug);
  end if;

  select candidate.step_index as index, candidate.step_slug as slug
  into flaw
  from pgflow.step_queue_candidates(check_step_slugs.flow_slug, check_step_slugs.step_slugs) as candidate
  where not pgflow.is_valid_slug(candidate.step_slug)
  order by candidate.step_index
  limit 1;

  if found then
    perform pgflow.refuse_slug(
      'Step',
      flaw.slug,
      format(' at index %s in flow "%s"', flaw.index, check_step_slugs.flow_slug)
    );
  end if;

  select twin.index, twin.slug, twin.other_index, twin.other_slug
  into flaw
  from (
    select
      candidate.step_index as index,
      candidate.step_slug as slug,
      first_value(candidate.step_index) over same_name as other_index,
      first_value(candidate.step_slug) over same_name as other_slug
    from pgflow.step_queue_candidates(check_step_slugs.flow_slug, check_step_slugs.step_slugs) as candidate
    window same_name as (partition by candidate.readable order by candidate.step_index)
  ) as twin
  where twin.index <> twin.other_index
  order by twin.index
  limit 1;

  if found then
    raise exception using
      errcode = 'PF003',
      message = format(
        'Steps "%s" and "%s" of flow "%s" cannot both have a queue.',
        flaw.other_slug,
        flaw.slug,
        check_step_slugs.flow_slug
      ),
      detail = format(
        'They are at index %s and %s; queue names are lower case, so both slugs stand for the same name.',
        flaw.other_index,
        flaw.index
      ),
      hint = 'Give the steps slugs that differ in more than case.';
  end if;
end
$function$;

comment on function pgflow.check_step_slugs(text, text[]) is
'Internal: returns when a step-mode flow can be told apart from others and its steps from each other. Raises PF006 (no steps), PF008 (bad slug), PF003 (two slugs that are equal or differ by case alone), in this order.';

create function pgflow.drop_queues(flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  own record;
  removal text;
begin
  perform pgflow.check_foreign_routes(drop_queues.flow_slug);

  for own in
    select owner.queue_name, owner.physical_created_at, physical.created_at
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select queue.queue_name from pgflow.queues as queue where queue.flow_slug = drop_queues.flow_slug)
    ) as physical
      on physical.queue_name = owner.queue_name
    where owner.flow_slug = drop_queues.flow_slug
    order by owner.queue_name collate "C"
  loop
    if own.created_at <> own.physical_created_at then
      -- Made again by somebody: what it holds is not ours.
      raise notice using
        message = format('Queue "%s" was made again outside of flow "%s".', own.queue_name, drop_queues.flow_slug),
        detail = format('PGMQ says at %s, its owner row said at %s.', own.created_at, own.physical_created_at),
        hint = format(
          'It is left where it is. When nobody needs it: %s.',
          array_to_string(pgflow.queue_removal(own.queue_name), '; ')
        );
      continue;
    end if;

    foreach removal in array pgflow.queue_removal(own.queue_name)
    loop
      execute removal;
    end loop;
  end loop;

  delete from pgflow.queues as owner
  where owner.flow_slug = drop_queues.flow_slug;
end
$function$;

comment on function pgflow.drop_queues(text) is
'Internal: drops the queues that a flow owns, with their archives, under every spelling that PGMQ lists, and gives up their ownership. A queue that somebody made again is left alone, with a NOTICE. Raises what check_foreign_routes() raises.';

create function pgflow.flow_routes(flow_slug text, queue_mode text, step_slugs text[])
returns table (step_index int, step_slug text, queue_name text)
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
begin
  if flow_routes.queue_mode = 'step' then
    return query
    select route.step_index, route.step_slug, route.queue_name
    from pgflow.resolve_step_queues(flow_routes.flow_slug, flow_routes.step_slugs) as route
    order by route.step_index;
    return;
  end if;

  if length(flow_routes.flow_slug) > pgflow.max_queue_name_length() then
    raise exception using
      errcode = 'PF015',
      message = format('Flow slug "%s" is too long for a queue name.', flow_routes.flow_slug),
      detail = format(
        'The slug is %s characters; PGMQ allows at most %s for a queue.',
        length(flow_routes.flow_slug),
        pgflow.max_queue_name_length()
      ),
      hint = format('Shorten the flow slug to at most %s characters.', pgflow.max_queue_name_length());
  end if;

  return query
  select (step.position - 1)::int, step.slug, lower(flow_routes.flow_slug collate "C")
  from unnest(flow_routes.step_slugs) with ordinality as step (slug, position)
  order by step.position;
end
$function$;

comment on function pgflow.flow_routes(text, text, text[]) is
'Internal: the route of every step of a complete flow in either queue mode, in step order: the flow''s one queue, or what resolve_step_queues() gives. Reads no table. Raises PF015 (slug too long for the one queue) and what resolve_step_queues() raises.';

create function pgflow.highest_message_id(queue_name text)
returns bigint
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  highest bigint;
  found_id bigint;
  physical record;
begin
  select coalesce(max(task.message_id), 0)
  into highest
  from pgflow.step_tasks as task
  where task.queue_name = highest_message_id.queue_name;

  select queue.*
  into physical
  from pgflow.physical_queues(array[highest_message_id.queue_name]) as queue;

  if physical.has_queue_table then
    -- The sequence remembers what was sent and deleted; a queue that somebody refilled can be ahead of it.
    execute format(
      'select greatest(max(message.msg_id), pg_sequence_last_value(pg_get_serial_sequence(%L, ''msg_id''))) '
      'from pgmq.%I as message',
      format('pgmq.%I', 'q_' || highest_message_id.queue_name),
      'q_' || highest_message_id.queue_name
    )
    into found_id;
    highest := greatest(highest, found_id);
  end if;

  if physical.has_archive_table then
    execute format(
      'select max(message.msg_id) from pgmq.%I as message',
      'a_' || highest_message_id.queue_name
    )
    into found_id;
    highest := greatest(highest, found_id);
  end if;

  return highest;
end
$function$;

comment on function pgflow.highest_message_id(text) is
'Internal: the highest message id that is known to have been sent to a queue (canonical name), from its sequence, its messages, its archive and the tasks that were sent to it; 0 when there is none. The queue may be gone.';

create function pgflow.judge_queues(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean
)
returns table (
  step_index int,
  queue_name text,
  owner pgflow.queues,
  spellings text[],
  created_at timestamptz,
  relations text[],
  intruders text[],
  name_holders text[],
  twin_queue text,
  errcode text
)
language sql
stable
set search_path to pg_catalog, pg_temp
-- The planner guesses at thousands of queues: compiling such a plan takes a second, running it milliseconds.
set jit to off
as $function$
  with wanted as materialized (
    select wanted.queue_name, wanted.step_slug
    from pgflow.queues_to_own(judge_queues.flow_slug, judge_queues.queue_mode, judge_queues.step_slugs) as wanted
  ),
  relation_to_make as (
    select wanted.queue_name, relation.name
    from wanted
    cross join lateral unnest(pgflow.queue_relations(wanted.queue_name)) as relation (name)
  )
  select
    coalesce(array_position(judge_queues.step_slugs, wanted.step_slug) - 1, 0),
    wanted.queue_name,
    case when owner.queue_name is null then neighbour.queue else owner end,
    physical.spellings,
    physical.created_at,
    physical.relations,
    physical.intruders,
    physical.name_holders,
    twin.queue_name,
    case
      when twin.queue_name is not null then 'PF003'
      when owner.queue_name is null then
        case
          when (neighbour.queue).queue_name is not null then 'PF005'
          when physical.is_taken then 'PF004'
        end
      when owner.flow_slug <> judge_queues.flow_slug then 'PF005'
      when owner.step_slug is distinct from wanted.step_slug and not judge_queues.replaces_own_queues then 'PF005'
      -- A queue made again by somebody may hold what is not ours to drop.
      when physical.created_at <> owner.physical_created_at then 'PF007'
      -- Dropping the queue would leave these in the way of the new one.
      when physical.intruders || physical.name_holders <> '{}' then 'PF007'
      when judge_queues.replaces_own_queues then null
      when physical.created_at is null or not (physical.has_queue_table and physical.has_archive_table) then 'PF007'
    end
  from wanted
  inner join pgflow.physical_queues(array(select every.queue_name from wanted as every)) as physical
    on physical.queue_name = wanted.queue_name
  left join pgflow.queues as owner
    on owner.queue_name = wanted.queue_name
  -- PGMQ's name for the table of one queue can be its name for an index of another: of the same flow,
  left join relation_to_make as twin
    on twin.name = 'q_' || wanted.queue_name
    and twin.queue_name <> wanted.queue_name
  -- or of one that is there already.
  left join lateral (
    select other as queue
    from unnest(physical.name_holders) as holder (name)
    inner join pgflow.queues as other
      on other.queue_name = substring(holder.name from '^pgmq[.][qa]_(.+)$')
    order by other.queue_name collate "C"
    limit 1
  ) as neighbour
    on true;
$function$;

comment on function pgflow.judge_queues(text, text, text[], boolean) is
'Internal: whether a complete flow can have the queues it needs: one row a queue, with what is known of it, and the SQLSTATE of what is in the way (null: nothing). owner: whose the queue is, else whose other queue holds a name that it needs. replaces_own_queues: what the flow owns now is going to be dropped first. Raises what queues_to_own() raises.';

create function pgflow.lock_queue_names(queue_names text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgmq.acquire_queue_lock(wanted.queue_name)
  from (
    select distinct name.queue_name collate "C" as queue_name
    from unnest(queue_names) as name (queue_name)
    order by queue_name
  ) as wanted;
end
$function$;

comment on function pgflow.lock_queue_names(text[]) is
'Internal: keeps others from making or dropping queues of these (canonical) names until the end of the transaction, by PGMQ''s own lock. In name order, so ask for all that a change needs at once: after the flow, before the tables of its queues.';

create function pgflow.lock_queues(flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  table_to_lock text;
begin
  for table_to_lock in
    select relation.name
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select own.queue_name from pgflow.queues as own where own.flow_slug = lock_queues.flow_slug)
    ) as physical
      on physical.queue_name = owner.queue_name
    cross join lateral (
      values
      ('q_' || owner.queue_name, physical.has_queue_table),
      ('a_' || owner.queue_name, physical.has_archive_table)
    ) as relation (name, is_there)
    where owner.flow_slug = lock_queues.flow_slug
      and relation.is_there
    order by owner.queue_name collate "C", relation.name collate "C" desc
  loop
    execute format('lock table pgmq.%I in access exclusive mode', table_to_lock);
  end loop;
end
$function$;

comment on function pgflow.lock_queues(text) is
'Internal: locks the queues of a flow against everybody until the end of the transaction, in name order. Waits for whoever reads or sends at the moment.';

create function pgflow.make_queue(queue_name text, highest_id bigint default 0)
returns timestamptz
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  made_at timestamptz;
  in_the_way record;
begin
  select physical.intruders, physical.name_holders
  into in_the_way
  from pgflow.physical_queues(array[make_queue.queue_name]) as physical
  where physical.intruders || physical.name_holders <> '{}';

  if found then
    raise exception using
      errcode = 'PF007',
      message = format('Queue "%s" can''t be made: names that it needs are taken.', make_queue.queue_name),
      detail = pgflow.taken_names(in_the_way.intruders, in_the_way.name_holders),
      hint = concat(
        'Rename what has them',
        '; or, when nobody needs it, ' || nullif(array_to_string(in_the_way.intruders, '; '), ''),
        '. Then call this again.'
      );
  end if;

  perform pgmq.create(make_queue.queue_name);

  -- An id that somebody holds from an earlier queue of this name must never name a new task.
  if make_queue.highest_id > 0 then
    execute format(
      'alter table pgmq.%I alter column msg_id restart with %s',
      'q_' || make_queue.queue_name,
      make_queue.highest_id + 1
    );
  end if;

  select physical.created_at
  into made_at
  from pgflow.physical_queues(array[make_queue.queue_name]) as physical;

  return made_at;
end
$function$;

comment on function pgflow.make_queue(text, bigint) is
'Internal: makes a queue (canonical name), or what is missing of it, with a first message id above highest_id, and returns the time at which PGMQ says it was made: what belongs into queues.physical_created_at. Checks no ownership. Raises PF007 when something else has a name that the queue needs.';

create function pgflow.max_queue_name_length()
returns int
language sql
immutable
parallel safe
begin atomic
  -- PGMQ puts up to 16 characters before a queue name, and PostgreSQL cuts identifiers at 63.
  select 47;
end;

comment on function pgflow.max_queue_name_length() is
'Internal: how many characters a queue name may have: a fixed limit of this extension, whatever a newer PGMQ would accept.';

create function pgflow.next_message_id(queue_name text, highest_id bigint)
returns bigint
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  ids regclass;
  last_id bigint;
  next_id bigint;
begin
  -- The table's lock before that of its sequence: whoever drops them has them in this order.
  execute format('select from pgmq.%I limit 0', 'q_' || next_message_id.queue_name);
  ids := pg_get_serial_sequence(format('pgmq.%I', 'q_' || next_message_id.queue_name), 'msg_id');
  last_id := pg_sequence_last_value(ids);

  if last_id >= next_message_id.highest_id then
    return last_id + 1;
  end if;

  -- A sequence that was restarted and not used since tells its last value only to who reads it.
  execute format('select sequence.last_value + sequence.is_called::int from %s as sequence', ids)
  into next_id;

  return next_id;
exception
  when undefined_table then
    return null;
end
$function$;

comment on function pgflow.next_message_id(text, bigint) is
'Internal: the id that the next message of a queue (canonical name) gets; quick when it is above highest_id. Null when the queue''s table is gone.';

create function pgflow.own_queues(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  highest_id bigint default 0
)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  wanted_names constant text[] := array(
    select wanted.queue_name
    from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted
    order by wanted.queue_name collate "C"
  );
  new_names text[];
  queue_to_make text;
  made_at timestamptz;
begin
  -- Nobody can make one of these queues between the check and us.
  perform pgflow.lock_queue_names(wanted_names);

  perform pgflow.check_queues(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs);

  begin
    with inserted as (
      insert into pgflow.queues (queue_name, flow_slug, step_slug, physical_created_at)
      select wanted.queue_name, own_queues.flow_slug, wanted.step_slug, transaction_timestamp()
      from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted
      order by wanted.queue_name collate "C"
      on conflict do nothing
      returning queues.queue_name
    )
    select coalesce(array_agg(inserted.queue_name order by inserted.queue_name collate "C"), '{}')
    into new_names
    from inserted;

    -- A row that did not come has an owner who was not there yet when we checked.
    if exists (
      select
      from pgflow.queues as owner
      where owner.queue_name = any(wanted_names)
        and owner.flow_slug <> own_queues.flow_slug
    ) then
      raise unique_violation;
    end if;

    foreach queue_to_make in array new_names
    loop
      made_at := pgflow.make_queue(queue_to_make, own_queues.highest_id);

      update pgflow.queues as owner
      set physical_created_at = made_at
      where owner.queue_name = queue_to_make
        and owner.physical_created_at <> made_at;
    end loop;

    -- PGMQ's lock knows of no other spelling, and PGMQ would have left us with whatever was made under one.
    if exists (
      select
      from pgflow.physical_queues(new_names) as made
      where made.spellings <> array[made.queue_name]
    ) then
      raise unique_violation;
    end if;
  exception
    when unique_violation or duplicate_table then
      -- Somebody came in between. Now that our rows are gone again, what he has can be seen and named.
      perform pgflow.check_queues(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs);
      raise;
  end;
end
$function$;

comment on function pgflow.own_queues(text, text, text[], bigint) is
'Internal: takes the queues of a complete flow: checks them, writes their owner rows in name order and makes them, with message ids above highest_id. Raises what check_queues() raises, also for what came in between.';

create function pgflow.physical_queues(queue_names text[])
returns table (
  queue_name text,
  spellings text[],
  created_at timestamptz,
  has_queue_table boolean,
  has_archive_table boolean,
  relations text[],
  intruders text[],
  name_holders text[],
  is_taken boolean
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
-- The planner guesses at thousands of queues: compiling such a plan takes a second, running it milliseconds.
set jit to off
as $function$
begin
  -- In PL/pgSQL, since planning it takes longer than running it, and here the plan is kept.
  return query
  with wanted as (
    select distinct wanted.queue_name
    from unnest(physical_queues.queue_names) as wanted (queue_name)
  ),
  -- PGMQ folds case in the names of its tables, but not in its list of queues.
  listed as (
    select
      wanted.queue_name,
      array_agg(meta.queue_name::text order by meta.queue_name collate "C") as spellings,
      -- The newest: whoever lists or makes the queue again must show.
      max(meta.created_at) as created_at
    from wanted
    inner join pgmq.meta as meta
      on lower(meta.queue_name collate "C") = wanted.queue_name
    group by wanted.queue_name
  ),
  found as materialized (
    select
      wanted.queue_name,
      class.relname::text as name,
      class.oid,
      -- An index or a sequence counts as the table that it belongs to.
      coalesce(index.indrelid, sequence.refobjid, class.oid) as holder,
      -- What has the table's name but gives no ids to messages is no queue.
      class.relkind in ('r', 'p') and exists (
        select
        from pg_attribute as id
        where id.attrelid = class.oid
          and id.attname = 'msg_id'
          and (id.attidentity <> '' or class.relname = 'a_' || wanted.queue_name)
      ) as is_table
    from wanted
    cross join lateral unnest(pgflow.queue_relations(wanted.queue_name)) as relation (name)
    inner join pg_class as class
      on class.relnamespace = 'pgmq'::regnamespace
      and class.relname = relation.name
    left join pg_index as index
      on index.indexrelid = class.oid
    left join pg_depend as sequence
      on class.relkind = 'S'
      and sequence.classid = 'pg_class'::regclass
      and sequence.objid = class.oid
      and sequence.refclassid = 'pg_class'::regclass
      and sequence.deptype in ('a', 'i')
  ),
  piece as (
    select
      found.queue_name,
      found.name,
      found.is_table,
      case
        when not found.is_table and found.holder = found.oid and place.is_own then (
          select format('drop %s %s', replace(object.type, 'composite ', ''), object.identity)
          from pg_identify_object('pg_class'::regclass, found.oid, 0) as object
        )
      end as intruder,
      case when not place.is_own then found.holder::regclass::text end as name_holder
    from found
    cross join lateral (
      select found.holder::regclass::text in ('pgmq.q_' || found.queue_name, 'pgmq.a_' || found.queue_name)
    ) as place (is_own)
    union all
    -- A table needs a type of its name, too.
    select wanted.queue_name, type.typname, false, format('drop type pgmq.%I', type.typname), null
    from wanted
    cross join lateral unnest(array['q_' || wanted.queue_name, 'a_' || wanted.queue_name]) as needed (name)
    inner join pg_type as type
      on type.typname = needed.name
      and type.typnamespace = 'pgmq'::regnamespace
      and type.typrelid = 0
  ),
  there as (
    select
      piece.queue_name,
      array_agg(piece.name order by piece.name collate "C") as relations,
      bool_or(piece.is_table and piece.name = 'q_' || piece.queue_name) as has_queue_table,
      bool_or(piece.is_table and piece.name = 'a_' || piece.queue_name) as has_archive_table,
      array_remove(array_agg(piece.intruder order by piece.name collate "C"), null) as intruders,
      array_remove(array_agg(distinct piece.name_holder collate "C"), null) as name_holders
    from piece
    group by piece.queue_name
  )
  select
    wanted.queue_name,
    coalesce(listed.spellings, '{}'),
    listed.created_at,
    coalesce(there.has_queue_table, false),
    coalesce(there.has_archive_table, false),
    coalesce(there.relations, '{}'),
    coalesce(there.intruders, '{}'),
    coalesce(there.name_holders, '{}'),
    coalesce(listed.queue_name, there.queue_name) is not null
  from wanted
  left join listed
    on listed.queue_name = wanted.queue_name
  left join there
    on there.queue_name = wanted.queue_name
  order by wanted.queue_name collate "C";
end
$function$;

comment on function pgflow.physical_queues(text[]) is
'Internal: what PGMQ has under each of the canonical queue names given, one row a name: the spellings that it lists, when the newest was made, whether its tables are there, and which relations of queue_relations() are. intruders: what has the name of one of its tables and is no such table, each as the statement that drops it. name_holders: tables of other names that have, or whose indexes and sequences have, a name that the queue needs. is_taken: any of all this is there.';

create function pgflow.queue_conflicts(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean default false
)
returns table (
  step_index int,
  queue_name text,
  owner_flow text,
  owner_step text,
  errcode text,
  message text,
  detail text,
  hint text
)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select
    judged.step_index,
    judged.queue_name,
    (judged.owner).flow_slug,
    (judged.owner).step_slug,
    judged.errcode,
    case judged.errcode
      when 'PF003' then format(
        'Queues "%s" and "%s" of flow "%s" cannot both be made.',
        judged.twin_queue,
        judged.queue_name,
        queue_conflicts.flow_slug
      )
      when 'PF004' then format(
        'Queue "%s", which flow "%s" needs, exists already and belongs to no flow.',
        judged.queue_name,
        queue_conflicts.flow_slug
      )
      when 'PF005' then format(
        'Queue "%s", which flow "%s" needs, %s %s.',
        judged.queue_name,
        queue_conflicts.flow_slug,
        case
          when (judged.owner).queue_name = judged.queue_name then 'belongs to'
          else format('can''t be made beside queue "%s" of', (judged.owner).queue_name)
        end,
        pgflow.queue_owner(judged.owner)
      )
      else format(
        'Queue "%s" of flow "%s" is not the one that was made for it.',
        judged.queue_name,
        queue_conflicts.flow_slug
      )
    end,
    case
      when judged.errcode = 'PF003' then format(
        'PGMQ''s name for the table of one, pgmq.q_%s, is its name for an index or sequence of the other.',
        judged.queue_name
      )
      when judged.errcode = 'PF005' and (judged.owner).queue_name = judged.queue_name then
        format('A queue has one owner; this one''s is %s.', pgflow.queue_owner(judged.owner))
      else concat_ws(
        ' ',
        case
          when judged.spellings <> '{}' then
            format('PGMQ lists it as "%s", made at %s.', array_to_string(judged.spellings, '", "'), judged.created_at)
          else 'PGMQ does not list it.'
        end,
        case
          when judged.relations <> '{}' then
            format('Schema pgmq has %s.', array_to_string(judged.relations, ', '))
          else 'Schema pgmq has nothing of it.'
        end,
        nullif(pgflow.taken_names(judged.intruders, judged.name_holders), ''),
        case
          when judged.errcode = 'PF007' then
            'Its owner row says it was made at ' || (judged.owner).physical_created_at::text || '.'
        end
      )
    end,
    case
      when judged.errcode = 'PF003' then 'Rename one of the steps.'
      when judged.errcode = 'PF004' then concat(
        'Use another flow slug',
        '; or, when nobody needs it, '
        -- What else has a name that the queue needs is not the queue, and nothing is known of it.
        || case when judged.name_holders = '{}' then removal.statements end,
        '.'
      )
      -- Whoever deleted the owner now would meet the steps of this flow, which route to the queue.
      when judged.errcode = 'PF005' and owning.was_taken_away then format(
        'Steps of flow "%s" route to it: its owner was changed by hand. To give it back: '
        'update pgflow.queues set flow_slug = %L, step_slug = %L where queue_name = %L.',
        queue_conflicts.flow_slug,
        queue_conflicts.flow_slug,
        case when queue_conflicts.queue_mode = 'step' then queue_conflicts.step_slugs[judged.step_index + 1] end,
        judged.queue_name
      )
      -- Left behind by a flow that was deleted by hand: no function works on a flow that is not there.
      when not owning.flow_is_there then format(
        'There is no flow "%s"; its row was left behind. When nobody needs the queue: '
        'delete from pgflow.queues where queue_name = %L.',
        (judged.owner).flow_slug,
        (judged.owner).queue_name
      )
      when judged.errcode = 'PF005' then format(
        'Use another flow slug; or, when nobody needs flow "%s", select pgflow.delete_flow_and_data(%L).',
        (judged.owner).flow_slug,
        (judged.owner).flow_slug
      )
      when judged.intruders || judged.name_holders <> '{}' then concat(
        'Rename what has the names that the queue needs',
        '; or, when nobody needs it, ' || nullif(array_to_string(judged.intruders, '; '), ''),
        '.'
      )
      else concat(
        format(
          'Run select * from pgflow.repair_queues(%L) to take over or make again what is missing',
          queue_conflicts.flow_slug
        ),
        '; or, when nobody needs what is there, ' || removal.statements,
        '.'
      )
    end
  from pgflow.judge_queues(
    queue_conflicts.flow_slug,
    queue_conflicts.queue_mode,
    queue_conflicts.step_slugs,
    queue_conflicts.replaces_own_queues
  ) as judged
  cross join lateral (
    select nullif(array_to_string(pgflow.queue_removal(judged.queue_name) || judged.intruders, '; '), '')
  ) as removal (statements)
  cross join lateral (
    -- A flow that is just being made is not there yet, even where its row is.
    select case
      when (judged.owner).flow_slug = queue_conflicts.flow_slug then queue_conflicts.replaces_own_queues
      else exists (select from pgflow.flows as flow where flow.flow_slug = (judged.owner).flow_slug)
    end,
    exists (
      select
      from pgflow.steps as step
      where step.flow_slug = queue_conflicts.flow_slug
        and step.queue_name = (judged.owner).queue_name
    )
  ) as owning (flow_is_there, was_taken_away)
  where judged.errcode is not null
  order by judged.step_index;
$function$;

comment on function pgflow.queue_conflicts(text, text, text[], boolean) is
'Internal: why a complete flow can''t have the queues it needs: one row a queue, in step order, with the SQLSTATE, MESSAGE, DETAIL and HINT that check_queues() raises. Empty when nothing is in the way. Raises what queues_to_own() raises.';

create function pgflow.queue_owner(owner pgflow.queues)
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when owner.step_slug is null then format('flow "%s"', owner.flow_slug)
    else format('step "%s" of flow "%s"', owner.step_slug, owner.flow_slug)
  end;
$function$;

comment on function pgflow.queue_owner(pgflow.queues) is 'Internal: who owns a queue, in words for error messages.';

create function pgflow.queue_relations(queue_name text)
returns text[]
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select array[
    'q_' || queue_relations.queue_name,
    'a_' || queue_relations.queue_name,
    -- PGMQ skips an index whose name is taken, and finds the sequence by this name only.
    'q_' || queue_relations.queue_name || '_vt_idx',
    'q_' || queue_relations.queue_name || '_pkey',
    'q_' || queue_relations.queue_name || '_msg_id_seq'
  ];
$function$;

comment on function pgflow.queue_relations(text) is
'Internal: what PGMQ makes in its schema for a queue (canonical name): its tables, and what belongs to them and could be in the way of another queue''s.';

create function pgflow.queue_removal(queue_name text)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when way.is_pgmqs then array[format('select pgmq.drop_queue(%L)', physical.spellings[1])]
    else array_remove(
      array[
        case when physical.has_queue_table then format('drop table pgmq.%I', 'q_' || physical.queue_name) end,
        case when physical.has_archive_table then format('drop table pgmq.%I', 'a_' || physical.queue_name) end,
        case
          when physical.spellings <> '{}' then
            format('delete from pgmq.meta where lower(queue_name collate "C") = %L', physical.queue_name)
        end
      ],
      null
    )
  end
  from pgflow.physical_queues(array[queue_removal.queue_name]) as physical
  cross join lateral (
    -- PGMQ's own way leaves what belongs to another spelling, gives up where the table is gone, asks pg_partman about
    -- a partitioned queue, and folds a spelling as the database's locale does, in Turkish to something else.
    select
      physical.has_queue_table
      and cardinality(physical.spellings) = 1
      and physical.intruders = '{}'
      and pgmq.format_table_name(physical.spellings[1], 'q') = 'q_' || physical.queue_name
      and not exists (
        select
        from pgmq.meta as meta
        where meta.queue_name = physical.spellings[1]
          and meta.is_partitioned
          and not exists (select from pg_extension as extension where extension.extname = 'pg_partman')
      )
  ) as way (is_pgmqs);
$function$;

comment on function pgflow.queue_removal(text) is
'Internal: the statements that drop a queue (canonical name) with its archive and everything that PGMQ lists of it, in order; none when there is nothing. What has the name of a table of the queue and is none stays. Checks no ownership.';

create function pgflow.queues_to_own(flow_slug text, queue_mode text, step_slugs text[])
returns table (queue_name text, step_slug text)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  -- A flow-mode flow has its queue even without steps, so its slug stands in for one.
  select
    route.queue_name,
    case when queues_to_own.queue_mode = 'step' then route.step_slug end
  from pgflow.flow_routes(
    queues_to_own.flow_slug,
    queues_to_own.queue_mode,
    case when queues_to_own.queue_mode = 'step' then queues_to_own.step_slugs else array[queues_to_own.flow_slug] end
  ) as route
  order by route.queue_name collate "C";
$function$;

comment on function pgflow.queues_to_own(text, text, text[]) is
'Internal: the queues that a complete flow needs for itself, sorted by name, each with the step it is private to (null in flow mode). Raises what flow_routes() raises.';

create function pgflow.refuse_full_lock_table(flow_slug text, made bigint, dropped bigint, reason text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  -- Measured: each queue is two tables with their indexes, a sequence, TOAST tables and the types of all these.
  locks constant bigint := 24 * made + 40 * dropped;
  slots constant bigint := current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint;
begin
  raise exception using
    errcode = 'PF017',
    message = format(
      'The server''s lock table is too small for the queues of %s.',
      coalesce('flow "' || refuse_full_lock_table.flow_slug || '"', 'all flows')
    ),
    detail = format(
      'There are %s queues to make and %s to drop, which takes about %s locks in one transaction; max_locks_per_transaction, %s, promises %s in all, for %s connections: %s.',
      made,
      dropped,
      locks,
      current_setting('max_locks_per_transaction'),
      slots * current_setting('max_locks_per_transaction')::bigint,
      slots,
      refuse_full_lock_table.reason
    ),
    hint = format(
      'Set max_locks_per_transaction to %s or more and restart the server, or use a flow with fewer steps or the default single queue.',
      -- What is needed here, and what is there for all others.
      locks / slots + current_setting('max_locks_per_transaction')::bigint
    );
end
$function$;

comment on function pgflow.refuse_full_lock_table(text, bigint, bigint, text) is
'Internal: raises PF017 for a change that makes and drops that many queues of a flow (null: of all). reason is the server''s own message.';

create function pgflow.refuse_slug(subject text, slug text, place text default '')
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF008',
    message = format(
      '%s slug %s%s is not valid.',
      refuse_slug.subject,
      coalesce(to_json(refuse_slug.slug)::text, 'null'),
      refuse_slug.place
    ),
    detail = format('It has %s characters.', coalesce(length(refuse_slug.slug), 0)),
    hint = 'Use 1 to 128 letters, digits or underscores, not starting with a digit; "run" is reserved.';
end
$function$;

comment on function pgflow.refuse_slug(text, text, text) is
'Internal: raises PF008 for a slug that breaks the rules. subject: Flow or Step; place: where the slug stands, as the rest of a sentence.';

create function pgflow.resolve_step_queues(flow_slug text, step_slugs text[])
returns table (step_index int, step_slug text, queue_name text, resolution text)
language plpgsql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Before any naming: long twins would fall back to different index names, and nobody would notice them.
  perform pgflow.check_step_slugs(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs);
  perform pgflow.check_name_lengths(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs);

  -- No slug begins with a digit, so a fallback never equals a readable name, and all names are distinct here.
  return query
  select
    candidate.step_index,
    candidate.step_slug,
    case when name.is_readable then candidate.readable else candidate.fallback end,
    case when name.is_readable then 'readable' else 'fallback' end
  from pgflow.step_queue_candidates(resolve_step_queues.flow_slug, resolve_step_queues.step_slugs) as candidate
  cross join lateral (select length(candidate.readable) <= pgflow.max_queue_name_length()) as name (is_readable)
  order by candidate.step_index;
end
$function$;

comment on function pgflow.resolve_step_queues(text, text[]) is
'The queue of every step of a complete step-mode flow, in step order, with its zero-based index. resolution is readable (<flow>__<step>) or fallback (<flow>__<index>); names are lower case, at most 47 characters, never cut. Reads no table. Raises PF006 (no steps), PF008 (bad slug), PF003 (two steps, one name), PF001 (the flow fits no queue), PF002 (a step fits none), in this order.';

create function pgflow.restore_queue(queue_name text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  made_at timestamptz;
begin
  if (select physical.is_taken from pgflow.physical_queues(array[restore_queue.queue_name]) as physical) then
    return;
  end if;

  -- Whoever repairs the flow has taken it; only then it is known whether the queue is still gone.
  if not pgflow.take_flow(
    (select owner.flow_slug from pgflow.queues as owner where owner.queue_name = restore_queue.queue_name)
  ) then
    return;
  end if;

  if (select physical.is_taken from pgflow.physical_queues(array[restore_queue.queue_name]) as physical) then
    return;
  end if;

  made_at := pgflow.make_queue(restore_queue.queue_name, pgflow.highest_message_id(restore_queue.queue_name));

  update pgflow.queues as owner
  set physical_created_at = made_at
  where owner.queue_name = restore_queue.queue_name;
end
$function$;

comment on function pgflow.restore_queue(text) is
'Internal: makes an owned queue (canonical name) again when nothing of it is left, and continues its numbering. What was in it stays lost: repair_queues() sends it anew.';

create function pgflow.route_faults(flow_slug text, only_step text default null)
returns table (step_index int, step_slug text, persisted text, derived text, fault text)
language sql
stable
set search_path to pg_catalog, pg_temp
-- The planner guesses at thousands of queues: compiling such a plan takes a second, running it milliseconds.
set jit to off
as $function$
  with flow as (
    select
      flow.flow_slug,
      flow.queue_mode,
      array(
        select step.step_slug
        from pgflow.steps as step
        where step.flow_slug = flow.flow_slug
        order by step.step_index
      ) as step_slugs
    from pgflow.flows as flow
    where flow.flow_slug = route_faults.flow_slug
  ),
  derived as (
    select route.step_slug, route.queue_name
    from flow
    cross join lateral pgflow.flow_routes(flow.flow_slug, flow.queue_mode, flow.step_slugs) as route
    -- A step-mode flow that lost its steps to a hand edit has no routes; it differs from any shape anyway.
    where cardinality(flow.step_slugs) > 0
  ),
  route as (
    select step.step_index, step.step_slug, step.queue_name as persisted, derived.queue_name as derived
    from flow
    inner join pgflow.steps as step
      on step.flow_slug = flow.flow_slug
    inner join derived
      on derived.step_slug = step.step_slug
    where route_faults.only_step is null or step.step_slug = route_faults.only_step
  ),
  -- In flow mode the one queue is judged once, and even when there are no steps.
  queue as (
    select route.step_index, route.step_slug, route.persisted, route.derived, route.persisted as queue_name
    from flow
    cross join route
    where flow.queue_mode = 'step'
    union all
    select null, null, queue.queue_name, queue.queue_name, queue.queue_name
    from flow
    cross join lateral (select lower(flow.flow_slug collate "C")) as queue (queue_name)
    where flow.queue_mode = 'flow'
  ),
  faults as (
    select
      route.step_index,
      route.step_slug,
      route.persisted,
      route.derived,
      1 as witness,
      format(
        'Step "%s" (index %s): the persisted route is "%s", the derived one is "%s".',
        route.step_slug,
        route.step_index,
        route.persisted,
        route.derived
      ) as fault
    from route
    where route.persisted <> route.derived
    union all
    select
      queue.step_index,
      queue.step_slug,
      queue.persisted,
      queue.derived,
      2,
      case
        when owner.queue_name is null then format('Queue "%s" has no owner row.', queue.queue_name)
        else format('Queue "%s" belongs to %s.', queue.queue_name, pgflow.queue_owner(owner))
      end
    from queue
    left join pgflow.queues as owner
      on owner.queue_name = queue.queue_name
    where (owner.flow_slug, owner.step_slug) is distinct from (route_faults.flow_slug, queue.step_slug)
    union all
    select
      queue.step_index,
      queue.step_slug,
      queue.persisted,
      queue.derived,
      3,
      case
        when physical.created_at is null then format('Queue "%s" is not listed by PGMQ.', queue.queue_name)
        when not physical.has_queue_table then concat_ws(
          ' ', format('Table pgmq.q_%s is gone.', queue.queue_name), names.taken
        )
        when not physical.has_archive_table then concat_ws(
          ' ', format('Table pgmq.a_%s is gone.', queue.queue_name), names.taken
        )
        when physical.created_at <> owner.physical_created_at then format(
          'Queue "%s" was made again: PGMQ says at %s, its owner row says at %s.',
          queue.queue_name,
          physical.created_at,
          owner.physical_created_at
        )
        else format(
          'Queue "%1$s" was made again, or lost its count: its next message would be %2$s, but tasks name messages up to '
          '%3$s. Run alter table pgmq.q_%1$s alter column msg_id restart with %4$s.',
          queue.queue_name,
          numbering.next_id,
          sent.highest_id,
          sent.highest_id + 1
        )
      end
    from queue
    inner join pgflow.physical_queues(array(select every.queue_name from queue as every)) as physical
      on physical.queue_name = queue.queue_name
    left join pgflow.queues as owner
      on owner.queue_name = queue.queue_name
    cross join lateral (
      select nullif(pgflow.taken_names(physical.intruders, physical.name_holders), '')
    ) as names (taken)
    cross join lateral (
      select max(task.message_id)
      from pgflow.step_tasks as task
      where task.queue_name = queue.queue_name
    ) as sent (highest_id)
    -- PGMQ keeps the time of a queue that was dropped under another spelling, or table by table; its ids tell.
    cross join lateral (
      select case
        when physical.has_queue_table and sent.highest_id is not null then
          pgflow.next_message_id(queue.queue_name, sent.highest_id)
      end
    ) as numbering (next_id)
    where physical.created_at is null
      or not physical.has_queue_table
      or not physical.has_archive_table
      or physical.created_at <> owner.physical_created_at
      or numbering.next_id <= sent.highest_id
  )
  select faults.step_index, faults.step_slug, faults.persisted, faults.derived, faults.fault
  from faults
  order by faults.step_index nulls first, faults.witness;
$function$;

comment on function pgflow.route_faults(text, text) is
'Internal: what is wrong with the persisted routes of a flow, or of one step of it, against the three witnesses: the route derived from the persisted steps and mode, the owner row, and the physical queue in PGMQ (listed, its tables there, made when recorded, its ids not given out before). One row a fault, a sentence each; no rows: sound, or no such flow. In flow mode faults of the one queue have no step.';

create function pgflow.step_queue_candidates(flow_slug text, step_slugs text[])
returns table (step_index int, step_slug text, readable text, fallback text)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    (step.position - 1)::int,
    step.slug,
    lower((step_queue_candidates.flow_slug || '__' || step.slug) collate "C"),
    lower((step_queue_candidates.flow_slug || '__' || (step.position - 1)::text) collate "C")
  from unnest(step_queue_candidates.step_slugs) with ordinality as step (slug, position)
  order by step.position;
$function$;

comment on function pgflow.step_queue_candidates(text, text[]) is
'Internal: the two names that the queue of each step could have, in step order: by slug and by zero-based index. Checks nothing.';

create function pgflow.taken_names(intruders text[], name_holders text[])
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select concat_ws(
    ' ',
    'What has the name of one of its tables is none (' || nullif(array_to_string(intruders, '; '), '') || ').',
    'Other names that it needs belong to ' || nullif(array_to_string(name_holders, ', '), '') || '.'
  );
$function$;

comment on function pgflow.taken_names(text[], text[]) is
'Internal: what physical_queues() found under the names that a queue needs, in words for error messages: the statements that drop what is no table of a queue, and the tables that hold other names.';

create function pgflow.archive_messages(messages pgflow.message_ref[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
-- A plain scan of the primary key takes the ids in their order, and never reads a queue as a whole.
set enable_indexscan to on
set enable_seqscan to off
set enable_bitmapscan to off
as $function$
declare
  batch record;
begin
  for batch in
    select leaving.queue_name, leaving.msg_ids
    from (
      select message.queue_name, array_agg(distinct message.msg_id) as msg_ids
      from unnest(messages) as message
      group by message.queue_name
    ) as leaving
    -- A queue that somebody dropped has no messages left; that must not make a finished task fail.
    where exists (
      select
      from pg_class as queue_table
      where queue_table.relname = 'q_' || leaving.queue_name
        and queue_table.relnamespace = 'pgmq'::regnamespace
    )
    order by leaving.queue_name collate "C"
  loop
    -- Not pgmq.archive(): that raises when the archive has the id already.
    execute format(
      $sql$
        with taken as (
          delete from pgmq.%1$I as message
          where message.msg_id = any($1)
          returning
            message.msg_id, message.read_ct, message.enqueued_at, message.last_read_at,
            message.vt, message.message, message.headers
        )
        insert into pgmq.%2$I as archive (msg_id, read_ct, enqueued_at, last_read_at, archived_at, vt, message, headers)
        select msg_id, read_ct, enqueued_at, last_read_at, clock_timestamp(), vt, message, headers
        from taken
        on conflict (msg_id) do update set
          read_ct = excluded.read_ct,
          enqueued_at = excluded.enqueued_at,
          last_read_at = excluded.last_read_at,
          archived_at = excluded.archived_at,
          vt = excluded.vt,
          message = excluded.message,
          headers = excluded.headers
      $sql$,
      'q_' || batch.queue_name,
      'a_' || batch.queue_name
    )
    using batch.msg_ids;
  end loop;
end
$function$;

comment on function pgflow.archive_messages(pgflow.message_ref[]) is
'Internal: moves messages from their queues to the archives of these, whichever queues they are on. Messages that are gone already are passed over. Locks messages in the order of queue and id.';

create function pgflow.set_queue_visibility(
  queue_name text,
  msg_ids bigint[],
  visible_at timestamptz[],
  reads int default 0
)
returns int
language plpgsql
set search_path to pg_catalog, pg_temp
-- A plain scan of the primary key takes the ids in their order, and never reads a queue as a whole.
set enable_indexscan to on
set enable_seqscan to off
set enable_bitmapscan to off
as $function$
declare
  changed int;
begin
  if to_regclass(format('pgmq.%I', 'q_' || set_queue_visibility.queue_name)) is null then
    return 0;
  end if;

  execute format(
    $sql$
      update pgmq.%I as message
      set
        vt = ($2)[array_position($1, message.msg_id)],
        read_ct = message.read_ct + $3,
        last_read_at = case when $3 > 0 then clock_timestamp() else message.last_read_at end
      where message.msg_id = any($1)
    $sql$,
    'q_' || set_queue_visibility.queue_name
  )
  using msg_ids, visible_at, reads;

  get diagnostics changed = row_count;
  return changed;
end
$function$;

comment on function pgflow.set_queue_visibility(text, bigint[], timestamptz[], int) is
'Internal: sets when each of these messages of one queue can be read again and returns how many were there; the two arrays go in step. reads as in set_visibility().';

create function pgflow.set_visibility(messages pgflow.message_ref[], visible_at timestamptz[], reads int default 0)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
begin
  for batch in
    select changing.queue_name, changing.msg_ids, changing.visible_at
    from (
      select
        change.queue_name,
        array_agg(change.msg_id order by change.msg_id) as msg_ids,
        array_agg(change.visible_at order by change.msg_id) as visible_at
      from unnest(messages, set_visibility.visible_at) as change (queue_name, msg_id, visible_at)
      group by change.queue_name
    ) as changing
    order by changing.queue_name collate "C"
  loop
    perform pgflow.set_queue_visibility(batch.queue_name, batch.msg_ids, batch.visible_at, reads);
  end loop;
end
$function$;

comment on function pgflow.set_visibility(pgflow.message_ref[], timestamptz[], int) is
'Internal: sets when each message can be read again, whichever queues they are on; the two arrays go in step. reads is added to the read counters: 1 where the caller has just read the messages by itself. Messages that are gone are passed over.';

create function pgflow.set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets int[])
returns table (
  msg_id bigint,
  read_ct int,
  enqueued_at timestamptz,
  vt timestamptz,
  message jsonb,
  headers jsonb
)
language plpgsql
set search_path to pg_catalog, pg_temp
-- A plain scan of the primary key locks the messages in the order of their ids.
set enable_seqscan to off
set enable_bitmapscan to off
as $function$
begin
  if msg_ids is null or vt_offsets is null or cardinality(msg_ids) = 0 then
    return;
  end if;

  if cardinality(msg_ids) <> cardinality(vt_offsets) then
    raise exception using
      errcode = 'PF019',
      message = format(
        'msg_ids length (%s) must equal vt_offsets length (%s)', cardinality(msg_ids), cardinality(vt_offsets)
      ),
      detail = format('Queue "%s".', set_vt_batch.queue_name),
      hint = 'Pass one offset, in seconds from now, for every message id.';
  end if;

  return query execute format(
    $sql$
      update pgmq.%I as message
      set vt = clock_timestamp() + make_interval(secs => ($2)[array_position($1, message.msg_id)])
      where message.msg_id = any($1)
      returning
        message.msg_id, message.read_ct, message.enqueued_at, message.vt, message.message, message.headers
    $sql$,
    pgmq.format_table_name(set_vt_batch.queue_name, 'q')
  )
  using msg_ids, vt_offsets;
end
$function$;

comment on function pgflow.set_vt_batch(text, bigint[], int[]) is
'Sets the visibility timeout of many messages of one queue, each to now plus its own offset in seconds, and returns them. Null or empty ids give no rows; PF019 when the two arrays differ in length. As in pgflow 0.14.';

create function pgflow.add_step(
  flow_slug text,
  step_slug text,
  deps_slugs text[] default '{}',
  max_attempts int default null,
  base_delay int default null,
  timeout int default null,
  start_delay int default null,
  step_type text default 'single',
  required_input_pattern jsonb default null,
  forbidden_input_pattern jsonb default null,
  when_unmet text default 'skip',
  when_exhausted text default 'fail'
)
returns pgflow.steps
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  step pgflow.steps;
  dep_slugs constant text[] := array(
    select distinct dependency.slug
    from unnest(add_step.deps_slugs) as dependency (slug)
  );
begin
  perform pgflow.lock_slug(add_step.flow_slug);

  if exists (
    select
    from pgflow.flows as flow
    where flow.flow_slug = add_step.flow_slug
      and flow.queue_mode = 'step'
  ) then
    raise exception using
      errcode = 'PF009',
      message = format('Step "%s" can''t be added to flow "%s".', add_step.step_slug, add_step.flow_slug),
      detail = 'The flow has a queue for every step, and routes are only known for a complete shape.',
      hint = 'Compile the complete shape with pgflow.ensure_flow_compiled(), under a new flow slug.';
  end if;

  perform pgflow.check_routes(add_step.flow_slug, null);

  if add_step.step_type = 'map' and cardinality(add_step.deps_slugs) > 1 then
    raise exception using
      errcode = 'PF008',
      message = format(
        'Map step "%s" can have at most one dependency, but %s were provided: %s',
        add_step.step_slug,
        cardinality(add_step.deps_slugs),
        array_to_string(add_step.deps_slugs, ', ')
      ),
      detail = format('A map takes its elements from one array, in flow "%s".', add_step.flow_slug),
      hint = 'Put a single step before the map that joins its inputs into one array.';
  end if;

  insert into pgflow.steps (
    flow_slug,
    step_slug,
    step_type,
    step_index,
    deps_count,
    opt_max_attempts,
    opt_base_delay,
    opt_timeout,
    opt_start_delay,
    required_input_pattern,
    forbidden_input_pattern,
    when_unmet,
    when_exhausted,
    queue_name
  )
  select
    add_step.flow_slug,
    add_step.step_slug,
    add_step.step_type,
    coalesce(max(existing.step_index) + 1, 0),
    cardinality(dep_slugs),
    add_step.max_attempts,
    add_step.base_delay,
    add_step.timeout,
    add_step.start_delay,
    add_step.required_input_pattern,
    add_step.forbidden_input_pattern,
    add_step.when_unmet,
    add_step.when_exhausted,
    lower(add_step.flow_slug collate "C")
  from pgflow.steps as existing
  where existing.flow_slug = add_step.flow_slug
  on conflict on constraint steps_pkey do nothing
  returning steps.*
  into step;

  if found then
    insert into pgflow.deps (flow_slug, dep_slug, step_slug)
    select add_step.flow_slug, dependency.slug, add_step.step_slug
    from unnest(dep_slugs) as dependency (slug)
    order by dependency.slug collate "C";

    return step;
  end if;

  select existing.*
  into step
  from pgflow.steps as existing
  where existing.flow_slug = add_step.flow_slug
    and existing.step_slug = add_step.step_slug;

  return step;
end
$function$;

comment on function pgflow.add_step(text, text, text[], int, int, int, int, text, jsonb, jsonb, text, text) is
'Adds a step at the end of a flow-mode flow and returns its row; one that exists is returned as it is. deps_slugs: steps it waits for. max_attempts counts starts; base_delay, timeout and start_delay are in seconds; null takes the flow''s (start_delay: 0). step_type: single or map. when_unmet and when_exhausted: fail, skip or skip-cascade. Raises PF009 (step-mode flow), PF007 (the queue of the flow is not what was made with it), PF008 (a map with several dependencies); other bad values violate the tables'' constraints.';

create function pgflow.check_caller_routes(flow_slug text, derived jsonb, given jsonb)
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if check_caller_routes.given is null or check_caller_routes.given = check_caller_routes.derived then
    return;
  end if;

  raise exception using
    errcode = 'PF007',
    message = format(
      'The route map passed for flow "%s" is not the one that PostgreSQL derives.',
      check_caller_routes.flow_slug
    ),
    detail = case
      when jsonb_typeof(check_caller_routes.given) <> 'array' then
        format('Passed was %s, not an array.', pgflow.json_excerpt(check_caller_routes.given))
      else (
        -- Ten say enough, and a caller's mistake must not fill the log.
        select string_agg(
          format(
            'Index %s: passed %s, derived %s.',
            route.position - 1,
            coalesce(pgflow.json_excerpt(route.given), 'nothing'),
            coalesce(pgflow.json_excerpt(route.derived), 'nothing')
          ),
          ' '
          order by route.position
        ) filter (where route.number <= 10)
        || case when max(route.number) > 10 then format(' And %s more.', max(route.number) - 10) else '' end
        from (
          select
            coalesce(given.position, derived.position) as position,
            given.route as given,
            derived.route as derived,
            row_number() over (order by coalesce(given.position, derived.position)) as number
          -- Guarded once more: when the planner works out a subquery is not for the CASE around it to say.
          from jsonb_array_elements(
            case jsonb_typeof(check_caller_routes.given) when 'array' then check_caller_routes.given else '[]' end
          ) with ordinality as given (route, position)
          full join jsonb_array_elements(check_caller_routes.derived) with ordinality as derived (route, position)
            on derived.position = given.position
          where given.route is distinct from derived.route
        ) as route
      )
    end,
    hint = 'Client and extension derive names by different rules, so one of them is out of date. '
      'Pass null to let PostgreSQL derive the routes.';
end
$function$;

comment on function pgflow.check_caller_routes(text, jsonb, jsonb) is
'Internal: returns when a caller''s route map is null or equal to the derived one. Raises PF007, listing both where they differ.';

create function pgflow.check_compile_arguments(flow_slug text, shape jsonb, queue_mode text, routes jsonb)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if coalesce(check_compile_arguments.queue_mode not in ('flow', 'step'), true) then
    raise exception using
      errcode = 'PF019',
      message = format(
        'Queue mode %s is not known.',
        coalesce(to_json(check_compile_arguments.queue_mode)::text, 'null')
      ),
      detail = format('It was given for flow "%s".', check_compile_arguments.flow_slug),
      hint = 'Use ''flow'' (one queue for all steps) or ''step'' (a queue for every step).';
  end if;

  perform pgflow.check_shape(
    check_compile_arguments.flow_slug,
    check_compile_arguments.shape,
    check_compile_arguments.queue_mode
  );

  perform pgflow.check_caller_routes(
    check_compile_arguments.flow_slug,
    pgflow.derived_routes(
      check_compile_arguments.flow_slug,
      check_compile_arguments.queue_mode,
      pgflow.shape_slugs(check_compile_arguments.shape)
    ),
    check_compile_arguments.routes
  );
end
$function$;

comment on function pgflow.check_compile_arguments(text, jsonb, text, jsonb) is
'Internal: returns when the arguments of ensure_flow_compiled() describe a flow, whether it exists or not. Raises PF019 (queue mode), what check_shape() and flow_routes() raise, PF007 (the caller''s routes are not the derived ones).';

create function pgflow.check_shape(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  flaws text[];
  unknown_keys text[];
begin
  if not pgflow.is_valid_slug(check_shape.flow_slug) then
    perform pgflow.refuse_slug('Flow', check_shape.flow_slug);
  end if;

  select
    array_agg(described.flaw order by described.position) filter (where described.is_fatal),
    array_agg(described.place order by described.position) filter (where not described.is_fatal)
  into flaws, unknown_keys
  from (
    select
      flaw.position,
      place.place,
      place.place || ' ' || flaw.flaw as flaw,
      not flaw.is_unknown_key or check_shape.queue_mode = 'step' as is_fatal
    from pgflow.shape_flaws(check_shape.shape)
      with ordinality as flaw (step_index, step_slug, key, flaw, is_unknown_key, position)
    cross join lateral (
      select case
        when flaw.step_index is null then format('"%s"', flaw.key)
        when flaw.step_slug is null then format('the step at index %s: "%s"', flaw.step_index, flaw.key)
        else format('step "%s" at index %s: "%s"', flaw.step_slug, flaw.step_index, flaw.key)
      end
    ) as place (place)
  ) as described;

  if flaws is not null then
    raise exception using
      errcode = 'PF008',
      message = format('The shape of flow "%s" is not valid: %s.', check_shape.flow_slug, flaws[1]),
      detail = format(
        'It has %s: %s%s.',
        case cardinality(flaws) when 1 then '1 flaw' else cardinality(flaws) || ' flaws' end,
        array_to_string(flaws[1:10], '; '),
        case when cardinality(flaws) > 10 then '; ...' else '' end
      ),
      hint = 'Correct the flow''s definition and compile it again. Nothing was changed.';
  end if;

  if unknown_keys is not null then
    raise notice using
      message = format('The shape of flow "%s" has keys that are not known.', check_shape.flow_slug),
      detail = format('Ignored: %s.', array_to_string(unknown_keys, '; ')),
      hint = 'Check their spelling. A flow with per-step queues would be refused.';
  end if;
end
$function$;

comment on function pgflow.check_shape(text, jsonb, text) is
'Internal: returns when a flow''s slug is valid and its shape can be read by shape_steps(). Unknown keys are refused in step mode and a NOTICE in flow mode. Raises PF008, naming the step, its index and the key.';

create function pgflow.choice_flaw(choice jsonb, choices text[])
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when jsonb_typeof(choice_flaw.choice) <> 'string' then
      format('must be a string, but is %s', pgflow.json_excerpt(choice_flaw.choice))
    when choice_flaw.choice #>> '{}' <> all (choice_flaw.choices) then
      format(
        'must be one of %s, but is %s',
        array_to_string(choice_flaw.choices, ', '),
        pgflow.json_excerpt(choice_flaw.choice)
      )
  end;
$function$;

comment on function pgflow.choice_flaw(jsonb, text[]) is
'Internal: what is wrong with a JSON value that must be one of some strings; null when nothing is.';

create function pgflow.clear_flow(flow_slug text, reason text, next_queues text[] default '{}')
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  highest_id bigint;
begin
  -- The flow, then its queues, and only then runs and tasks: the order in which everybody locks.
  perform pgflow.take_flow(clear_flow.flow_slug);
  -- The names of those that go and of those that come, since another flow may wait for the one and have the other.
  perform pgflow.lock_queue_names(
    next_queues || array(select owner.queue_name from pgflow.queues as owner where owner.flow_slug = clear_flow.flow_slug)
  );
  perform pgflow.lock_queues(clear_flow.flow_slug);
  perform pgflow.stop_flow_workers(clear_flow.flow_slug, clear_flow.reason);

  -- Over all queues of the flow, so that a name that comes back two definitions later continues, too.
  select coalesce(max(pgflow.highest_message_id(owner.queue_name)), 0)
  into highest_id
  from pgflow.queues as owner
  where owner.flow_slug = clear_flow.flow_slug;

  perform pgflow.delete_runs(clear_flow.flow_slug);

  delete from pgflow.deps as dep
  where dep.flow_slug = clear_flow.flow_slug;

  delete from pgflow.steps as step
  where step.flow_slug = clear_flow.flow_slug;

  perform pgflow.drop_queues(clear_flow.flow_slug);

  return highest_id;
end
$function$;

comment on function pgflow.clear_flow(text, text, text[]) is
'Internal: takes everything from a flow but its row: tells its workers to stop for the given reason, deletes runs, steps and dependencies, and drops its queues. Returns the highest message id ever sent to one of them. next_queues: the queues that the caller makes afterwards. Waits for work in progress on the flow.';

create function pgflow.compile_flow(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.insert_flow(
    compile_flow.flow_slug,
    compile_flow.queue_mode,
    pgflow.shape_slugs(compile_flow.shape),
    (compile_flow.shape #>> '{options,maxAttempts}')::numeric::int,
    (compile_flow.shape #>> '{options,baseDelay}')::numeric::int,
    (compile_flow.shape #>> '{options,timeout}')::numeric::int
  );

  perform pgflow.insert_steps(compile_flow.flow_slug, compile_flow.shape, compile_flow.queue_mode);
end
$function$;

comment on function pgflow.compile_flow(text, jsonb, text) is
'Internal: makes a flow that does not exist yet, with its queues, steps and dependencies, from a checked shape. Raises what own_queues() raises.';

create function pgflow.compile_report(flow_slug text, status text, differences text[])
returns jsonb
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  uncovered constant text[] := pgflow.uncovered_steps(compile_report.flow_slug);
begin
  if uncovered <> '{}' then
    raise notice using
      message = format(
        'Flow "%s": no live worker serves %s of its steps: %s.',
        compile_report.flow_slug,
        cardinality(uncovered),
        array_to_string(uncovered[:20], ', ') || case when cardinality(uncovered) > 20 then ', ...' else '' end
      ),
      detail = 'Their work waits in its queues until a worker starts.';
  end if;

  return (
    select jsonb_build_object(
      'status', compile_report.status,
      'differences', to_jsonb(compile_report.differences),
      'queue_mode', flow.queue_mode,
      'routes', coalesce(persisted.routes, '[]'),
      'uncovered', to_jsonb(uncovered)
    )
    from pgflow.flows as flow
    cross join lateral (
      select jsonb_agg(
        jsonb_build_object('step_slug', step.step_slug, 'queue_name', step.queue_name)
        order by step.step_index
      )
      from pgflow.steps as step
      where step.flow_slug = flow.flow_slug
    ) as persisted (routes)
    where flow.flow_slug = compile_report.flow_slug
  );
end
$function$;

comment on function pgflow.compile_report(text, text, text[]) is
'Internal: the result of ensure_flow_compiled() from what is persisted now, with a NOTICE about steps that no live worker serves.';

create function pgflow.compile_verdict(flow_slug text, shape jsonb, allow_data_loss boolean, queue_mode text)
returns table (status text, differences text[])
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  of_shape text[];
  of_routing text[];
begin
  if not exists (select from pgflow.flows as flow where flow.flow_slug = compile_verdict.flow_slug) then
    return query
    select 'compiled', '{}'::text[];
    return;
  end if;

  of_shape := pgflow.shape_differences(compile_verdict.flow_slug, compile_verdict.shape);
  of_routing := pgflow.routing_differences(
    compile_verdict.flow_slug,
    compile_verdict.queue_mode,
    pgflow.shape_slugs(compile_verdict.shape)
  );

  return query
  select
    case
      when of_shape || of_routing = '{}' then 'verified'
      when compile_verdict.allow_data_loss or pgflow.is_local() then 'recompiled'
      when of_shape <> '{}' then 'mismatch'
      else 'refused'
    end,
    of_shape || of_routing;
end
$function$;

comment on function pgflow.compile_verdict(text, jsonb, boolean, text) is
'Internal: what has to happen so that a flow is as the checked arguments say: compiled, verified, recompiled, mismatch, or refused (the shape is equal, the routing is not); and how it differs now. Changes nothing.';

create function pgflow.create_flow(
  flow_slug text,
  max_attempts int default null,
  base_delay int default null,
  timeout int default null
)
returns pgflow.flows
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow pgflow.flows;
begin
  perform pgflow.lock_slug(create_flow.flow_slug);

  select existing.*
  into flow
  from pgflow.flows as existing
  where existing.flow_slug = create_flow.flow_slug;

  if found then
    if flow.queue_mode = 'flow' then
      perform pgflow.restore_queue(lower(flow.flow_slug collate "C"));
    end if;
    return flow;
  end if;

  return pgflow.insert_flow(
    create_flow.flow_slug,
    'flow',
    '{}',
    create_flow.max_attempts,
    create_flow.base_delay,
    create_flow.timeout
  );
end
$function$;

comment on function pgflow.create_flow(text, int, int, int) is
'Makes a flow-mode flow without steps, and its queue, and returns its row. max_attempts counts starts (null: 3), base_delay (null: 5) and timeout (null: 60) are in seconds. A flow that exists, in either mode, is returned as it is; when the queue of a flow-mode flow is gone, it is made again. Raises PF015 (slug too long for a queue), PF004, PF005, PF017; a bad slug violates slug_is_valid.';

create function pgflow.delete_flow_and_data(p_flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.lock_slug(delete_flow_and_data.p_flow_slug);

  if not exists (select from pgflow.flows as flow where flow.flow_slug = delete_flow_and_data.p_flow_slug) then
    return;
  end if;

  perform pgflow.clear_flow(
    delete_flow_and_data.p_flow_slug,
    format('Flow "%s" was deleted.', delete_flow_and_data.p_flow_slug)
  );

  delete from pgflow.flows as flow
  where flow.flow_slug = delete_flow_and_data.p_flow_slug;
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      delete_flow_and_data.p_flow_slug,
      0,
      (select count(*) from pgflow.queues as owner where owner.flow_slug = delete_flow_and_data.p_flow_slug),
      sqlerrm
    );
end
$function$;

comment on function pgflow.delete_flow_and_data(text) is
'Deletes a flow with its runs, tasks and messages, drops the queues that it owns, and tells its workers to stop. An unknown slug, one in another case too, deletes nothing. Waits for work in progress on the flow. Raises PF017 when the lock table is full.';

create function pgflow.delete_runs(flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  delete from pgflow.step_tasks as task
  using pgflow.runs as run
  where run.flow_slug = delete_runs.flow_slug
    and task.run_id = run.run_id;

  delete from pgflow.step_states as state
  using pgflow.runs as run
  where run.flow_slug = delete_runs.flow_slug
    and state.run_id = run.run_id;

  delete from pgflow.runs as run
  where run.flow_slug = delete_runs.flow_slug;
end
$function$;

comment on function pgflow.delete_runs(text) is
'Internal: deletes every run of a flow, with its steps'' states and its tasks. The caller holds the flow''s row, so that no other one works on them.';

create function pgflow.dependency_flaws(steps jsonb)
returns table (step_index int, flaw text)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  with step as (
    select (item.position - 1)::int as step_index, item.step, item.step ->> 'slug' as step_slug
    from jsonb_array_elements(dependency_flaws.steps) with ordinality as item (step, position)
  ),
  position_of as (
    select step.step_slug, min(step.step_index) as step_index
    from step
    group by step.step_slug
  ),
  dependency as (
    select step.step_index, step.step_slug, dependency.value, dependency.value #>> '{}' as dep_slug
    from step
    cross join lateral jsonb_array_elements(
      case when jsonb_typeof(step.step -> 'dependencies') = 'array' then step.step -> 'dependencies' else '[]' end
    ) as dependency (value)
  )
  select step.step_index, format('must be an array, but is %s', pgflow.json_excerpt(step.step -> 'dependencies'))
  from step
  where jsonb_typeof(step.step -> 'dependencies') <> 'array'
  union all
  select judged.step_index, judged.flaw
  from (
    select
      dependency.step_index,
      case
        when jsonb_typeof(dependency.value) <> 'string' then
          format('must hold slugs, but holds %s', pgflow.json_excerpt(dependency.value))
        when dependency.dep_slug = dependency.step_slug then 'names the step itself'
        when position_of.step_index is null then
          format('names %s, which is no step of the flow', pgflow.json_excerpt(dependency.value))
        -- What has to come earlier can't close a cycle.
        when position_of.step_index > dependency.step_index then
          format(
            'names %s, which only comes later, at index %s; a cycle or a wrong order',
            pgflow.json_excerpt(dependency.value),
            position_of.step_index
          )
      end as flaw
    from dependency
    left join position_of
      on position_of.step_slug = dependency.dep_slug
  ) as judged
  where judged.flaw is not null
  union all
  select
    step.step_index,
    format(
      'holds %s steps, but a map can have at most one dependency',
      count(distinct dependency.dep_slug)
    )
  from step
  inner join dependency
    on dependency.step_index = step.step_index
  where step.step ->> 'stepType' = 'map'
  group by step.step_index
  having count(distinct dependency.dep_slug) > 1;
$function$;

comment on function pgflow.dependency_flaws(jsonb) is
'Internal: what is wrong with the dependencies of an array of steps: of the wrong type, missing, later, the step itself, or more than one for a map.';

create function pgflow.derived_routes(flow_slug text, queue_mode text, step_slugs text[])
returns jsonb
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select coalesce(
    jsonb_agg(
      jsonb_build_object('step_slug', route.step_slug, 'queue_name', route.queue_name)
      order by route.step_index
    ),
    '[]'
  )
  from pgflow.flow_routes(derived_routes.flow_slug, derived_routes.queue_mode, derived_routes.step_slugs) as route;
$function$;

comment on function pgflow.derived_routes(text, text, text[]) is
'Internal: the route map of a complete flow as clients write it: [{"step_slug": ..., "queue_name": ...}, ...] in step order. Raises what flow_routes() raises.';

create function pgflow.empty_plan()
returns jsonb
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select jsonb_build_object(
    'error', null,
    'differences', '[]'::jsonb,
    'routes', '[]'::jsonb,
    'creates', '[]'::jsonb,
    'drops', '[]'::jsonb,
    'loses', jsonb_build_object('runs', 0, 'tasks', 0, 'messages', 0),
    'collisions', '[]'::jsonb
  );
$function$;

comment on function pgflow.empty_plan() is
'Internal: the plan of a compilation that changes nothing, with every key but the status.';

create function pgflow.ensure_flow_compiled(
  flow_slug text,
  shape jsonb,
  allow_data_loss boolean default false,
  queue_mode text default 'flow',
  routes jsonb default null
)
returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  verdict record;
begin
  perform pgflow.check_compile_arguments(
    ensure_flow_compiled.flow_slug,
    ensure_flow_compiled.shape,
    ensure_flow_compiled.queue_mode,
    ensure_flow_compiled.routes
  );

  perform pgflow.lock_slug(ensure_flow_compiled.flow_slug);

  select judged.status, judged.differences
  into verdict
  from pgflow.compile_verdict(
    ensure_flow_compiled.flow_slug,
    ensure_flow_compiled.shape,
    ensure_flow_compiled.allow_data_loss,
    ensure_flow_compiled.queue_mode
  ) as judged;

  case verdict.status
    when 'compiled' then
      perform pgflow.compile_flow(
        ensure_flow_compiled.flow_slug,
        ensure_flow_compiled.shape,
        ensure_flow_compiled.queue_mode
      );
    when 'recompiled' then
      perform pgflow.recompile_flow(
        ensure_flow_compiled.flow_slug,
        ensure_flow_compiled.shape,
        ensure_flow_compiled.queue_mode
      );
    when 'refused' then
      perform pgflow.refuse_routing(
        ensure_flow_compiled.flow_slug,
        ensure_flow_compiled.queue_mode,
        pgflow.shape_slugs(ensure_flow_compiled.shape),
        verdict.differences
      );
    else
      -- Verified or a mismatch: not a row is written, so that any number of workers can start at once.
  end case;

  return pgflow.compile_report(ensure_flow_compiled.flow_slug, verdict.status, verdict.differences);
end
$function$;

comment on function pgflow.ensure_flow_compiled(text, jsonb, boolean, text, jsonb) is
'Makes sure that a flow is there exactly as its complete shape, queue mode (flow or step) and routes say: compiles it when it is new, else verifies it and writes nothing. routes is the caller''s own route map, [{"step_slug", "queue_name"}, ...]; null lets PostgreSQL derive it. Where data may be lost (allow_data_loss, or is_local()), any difference leads to destructive recompilation. Returns {"status": compiled | verified | recompiled | mismatch, "differences", "queue_mode", "routes", "uncovered"}, the last three as persisted; steps without a live worker also go out as a NOTICE. Raises PF008 (shape), PF019 (queue mode), PF001, PF002, PF003, PF006, PF015 (names), PF004, PF005 (queues of others), PF007 (routing differs), PF017 (lock table full).';

create function pgflow.insert_flow(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  max_attempts int,
  base_delay int,
  timeout int
)
returns pgflow.flows
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow pgflow.flows;
begin
  insert into pgflow.flows (flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_timeout)
  values (
    insert_flow.flow_slug,
    insert_flow.queue_mode,
    coalesce(insert_flow.max_attempts, 3),
    coalesce(insert_flow.base_delay, 5),
    coalesce(insert_flow.timeout, 60)
  )
  returning flows.*
  into flow;

  perform pgflow.own_queues(insert_flow.flow_slug, insert_flow.queue_mode, insert_flow.step_slugs);

  return flow;
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      insert_flow.flow_slug,
      (
        select count(*)
        from pgflow.queues_to_own(insert_flow.flow_slug, insert_flow.queue_mode, insert_flow.step_slugs) as wanted
      ),
      0,
      sqlerrm
    );
end
$function$;

comment on function pgflow.insert_flow(text, text, text[], int, int, int) is
'Internal: makes a flow without steps, and the queues that the steps to come need. Null options take the defaults: 3 attempts, 5 s base delay, 60 s timeout. Raises what own_queues() raises, and PF017 when the lock table is full.';

create function pgflow.insert_steps(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  insert into pgflow.steps (
    flow_slug,
    step_slug,
    step_type,
    step_index,
    deps_count,
    opt_max_attempts,
    opt_base_delay,
    opt_timeout,
    opt_start_delay,
    required_input_pattern,
    forbidden_input_pattern,
    when_unmet,
    when_exhausted,
    queue_name
  )
  select
    insert_steps.flow_slug,
    given.step_slug,
    given.step_type,
    given.step_index,
    cardinality(given.dep_slugs),
    given.max_attempts,
    given.base_delay,
    given.timeout,
    given.start_delay,
    given.required_input_pattern,
    given.forbidden_input_pattern,
    given.when_unmet,
    given.when_exhausted,
    route.queue_name
  from pgflow.shape_steps(insert_steps.shape) as given
  inner join pgflow.flow_routes(
    insert_steps.flow_slug,
    insert_steps.queue_mode,
    pgflow.shape_slugs(insert_steps.shape)
  ) as route
    on route.step_index = given.step_index
  order by given.step_index;

  insert into pgflow.deps (flow_slug, dep_slug, step_slug)
  select insert_steps.flow_slug, dependency.slug, given.step_slug
  from pgflow.shape_steps(insert_steps.shape) as given
  cross join lateral unnest(given.dep_slugs) as dependency (slug)
  order by given.step_index, dependency.slug collate "C";
end
$function$;

comment on function pgflow.insert_steps(text, jsonb, text) is
'Internal: writes the steps, routes and dependencies of a checked shape. The flow and its queues are there already.';

create function pgflow.is_local()
returns boolean
language sql
stable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  -- The secret that every local Supabase CLI uses, and no deployed project does.
  select coalesce(
    current_setting('app.settings.jwt_secret', true) = 'super-secret-jwt-token-with-at-least-32-characters-long',
    false
  );
$function$;

comment on function pgflow.is_local() is
'Whether this is a developer''s local Supabase: true only when the setting app.settings.jwt_secret is the well-known one of the local CLI. There, a changed shape is recompiled at the cost of its data.';

create function pgflow.json_excerpt(value jsonb)
returns text
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when length(json_excerpt.value::text) > 100 then left(json_excerpt.value::text, 97) || '...'
    else json_excerpt.value::text
  end;
$function$;

comment on function pgflow.json_excerpt(jsonb) is
'Internal: a JSON value as text for a message, cut at 100 characters.';

create function pgflow.lock_slug(flow_slug text)
returns void
language sql
set search_path to pg_catalog, pg_temp
as $function$
  -- Sixty-four bits, so that two slugs practically never share a key.
  select pg_advisory_xact_lock(hashtextextended('pgflow.flow ' || lock_slug.flow_slug, 0));
$function$;

comment on function pgflow.lock_slug(text) is
'Internal: lets one transaction at a time define, change or delete the flow of exactly this slug, whether it exists yet or not. Held to the end of the transaction.';

create function pgflow.option_flaws(options jsonb, known_keys text[])
returns table (key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select 'options', format('must be an object, but is %s', pgflow.json_excerpt(option_flaws.options)), false
  where jsonb_typeof(option_flaws.options) <> 'object'
  union all
  select judged.key, judged.flaw, judged.is_unknown_key
  from (
    select
      'options.' || option.key as key,
      case
        when option.key <> all (option_flaws.known_keys) then
          format('is not known; known are %s', array_to_string(option_flaws.known_keys, ', '))
        when jsonb_typeof(option.value) <> 'number' then
          format('must be a whole number, but is %s', pgflow.json_excerpt(option.value))
        when trunc((option.value #>> '{}')::numeric) <> (option.value #>> '{}')::numeric then
          format('must be a whole number, but is %s', pgflow.json_excerpt(option.value))
        when (option.value #>> '{}')::numeric not between range.least and 2147483647 then
          format('must be between %s and 2147483647, but is %s', range.least, pgflow.json_excerpt(option.value))
      end as flaw,
      option.key <> all (option_flaws.known_keys) as is_unknown_key
    from jsonb_each(
      case when jsonb_typeof(option_flaws.options) = 'object' then option_flaws.options else '{}' end
    ) as option (key, value)
    cross join lateral (select case option.key when 'timeout' then 1 else 0 end) as range (least)
  ) as judged
  where judged.flaw is not null;
$function$;

comment on function pgflow.option_flaws(jsonb, text[]) is
'Internal: what is wrong with the runtime options of a shape or of one of its steps: whole numbers, timeout from 1, the others from 0. known_keys: the options there are. No rows for null.';

create function pgflow.pattern_flaws(pattern_key text, pattern jsonb)
returns table (key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    pattern_flaws.pattern_key,
    format(
      'must be {"defined": false} or {"defined": true, "value": {...}}, but is %s',
      pgflow.json_excerpt(pattern_flaws.pattern)
    ),
    false
  where jsonb_typeof(pattern_flaws.pattern) <> 'object'
    or jsonb_typeof(pattern_flaws.pattern -> 'defined') is distinct from 'boolean'
    or (
      pattern_flaws.pattern -> 'defined' = 'true'
      and jsonb_typeof(pattern_flaws.pattern -> 'value') is distinct from 'object'
    )
  union all
  select
    pattern_flaws.pattern_key || '.' || part.key,
    case part.key when 'value' then 'is not used when "defined" is false' else 'is not known' end,
    true
  from jsonb_object_keys(
    case when jsonb_typeof(pattern_flaws.pattern) = 'object' then pattern_flaws.pattern else '{}' end
  ) as part (key)
  where part.key not in ('defined', 'value')
    or (part.key = 'value' and pattern_flaws.pattern -> 'defined' = 'false');
$function$;

comment on function pgflow.pattern_flaws(text, jsonb) is
'Internal: what is wrong with an input pattern of a step, reported under the given key. No rows for null.';

create function pgflow.persisted_steps(flow_slug text)
returns table (
  step_index int,
  step_slug text,
  step_type text,
  dep_slugs text[],
  when_unmet text,
  when_exhausted text,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb
)
language sql
stable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    step.step_index,
    step.step_slug,
    step.step_type,
    array(
      select dep.dep_slug
      from pgflow.deps as dep
      where dep.flow_slug = step.flow_slug
        and dep.step_slug = step.step_slug
      order by dep.dep_slug collate "C"
    ),
    step.when_unmet,
    step.when_exhausted,
    step.required_input_pattern,
    step.forbidden_input_pattern
  from pgflow.steps as step
  where step.flow_slug = persisted_steps.flow_slug
  order by step.step_index;
$function$;

comment on function pgflow.persisted_steps(text) is
'Internal: the persisted shape of a flow, in the form that shape_steps() gives, but for the runtime options, which are no part of it.';

create function pgflow.plan_flow_compiled(
  flow_slug text,
  shape jsonb,
  allow_data_loss boolean default false,
  queue_mode text default 'flow',
  routes jsonb default null
)
returns jsonb
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  step_slugs text[];
  verdict record;
  plan jsonb := pgflow.empty_plan();
  error_state text;
  error_message text;
  error_detail text;
  error_hint text;
begin
  perform pgflow.check_compile_arguments(
    plan_flow_compiled.flow_slug,
    plan_flow_compiled.shape,
    plan_flow_compiled.queue_mode,
    plan_flow_compiled.routes
  );

  step_slugs := pgflow.shape_slugs(plan_flow_compiled.shape);
  plan := plan || jsonb_build_object(
    'routes',
    pgflow.derived_routes(plan_flow_compiled.flow_slug, plan_flow_compiled.queue_mode, step_slugs)
  );

  select judged.status, judged.differences
  into verdict
  from pgflow.compile_verdict(
    plan_flow_compiled.flow_slug,
    plan_flow_compiled.shape,
    plan_flow_compiled.allow_data_loss,
    plan_flow_compiled.queue_mode
  ) as judged;

  plan := plan || jsonb_build_object('differences', verdict.differences);

  if verdict.status = 'refused' then
    perform pgflow.refuse_routing(
      plan_flow_compiled.flow_slug,
      plan_flow_compiled.queue_mode,
      step_slugs,
      verdict.differences
    );
  end if;

  if verdict.status in ('compiled', 'recompiled') then
    plan := plan || pgflow.planned_collisions(
      plan_flow_compiled.flow_slug,
      plan_flow_compiled.queue_mode,
      step_slugs,
      verdict.status = 'recompiled'
    );

    perform pgflow.check_queues(
      plan_flow_compiled.flow_slug,
      plan_flow_compiled.queue_mode,
      step_slugs,
      verdict.status = 'recompiled'
    );

    plan := plan || pgflow.planned_changes(plan_flow_compiled.flow_slug, plan_flow_compiled.queue_mode, step_slugs);
  end if;

  return plan || jsonb_build_object('status', verdict.status);
exception
  -- Whatever compiling would raise is what the caller wants to know.
  when others then
    get stacked diagnostics
      error_state = returned_sqlstate,
      error_message = message_text,
      error_detail = pg_exception_detail,
      error_hint = pg_exception_hint;

    return plan || jsonb_build_object(
      'status', 'refused',
      'error', jsonb_build_object(
        'sqlstate', error_state,
        'message', error_message,
        'detail', error_detail,
        'hint', error_hint
      )
    );
end
$function$;

comment on function pgflow.plan_flow_compiled(text, jsonb, boolean, text, jsonb) is
'What ensure_flow_compiled() would do with the same arguments, now: {"status": compiled | verified | recompiled | mismatch | refused, "error": null or {"sqlstate", "message", "detail", "hint"}, "differences", "routes": the derived ones, "creates" and "drops": queue names, "loses": {"runs", "tasks", "messages"}, "collisions": [{"queue_name", "owner_flow", "owner_step"}]}. Changes nothing, keeps no worker waiting and raises nothing that compiling would raise.';

create function pgflow.planned_changes(flow_slug text, queue_mode text, step_slugs text[])
returns jsonb
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with owned as materialized (
    select
      owner.queue_name,
      owner.physical_created_at,
      flow.flow_slug is not null as is_replaced,
      physical.created_at,
      physical.spellings <> '{}' or physical.has_queue_table or physical.has_archive_table as is_there
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select every.queue_name from pgflow.queues as every where every.flow_slug = planned_changes.flow_slug)
    ) as physical
      on physical.queue_name = owner.queue_name
    -- Without its flow, an owner row that was left behind is taken as it is, and its queue too.
    left join pgflow.flows as flow
      on flow.flow_slug = owner.flow_slug
    where owner.flow_slug = planned_changes.flow_slug
  ),
  dropped as (
    select owned.queue_name
    from owned
    where owned.is_replaced
      and owned.is_there
      -- What somebody made again is not the flow's to drop.
      and coalesce(owned.created_at = owned.physical_created_at, true)
  )
  select jsonb_build_object(
    'creates',
    (
      select coalesce(jsonb_agg(wanted.queue_name order by wanted.queue_name collate "C"), '[]')
      from pgflow.queues_to_own(
        planned_changes.flow_slug,
        planned_changes.queue_mode,
        planned_changes.step_slugs
      ) as wanted
      where wanted.queue_name not in (select owned.queue_name from owned where not owned.is_replaced)
    ),
    'drops',
    (select coalesce(jsonb_agg(dropped.queue_name order by dropped.queue_name collate "C"), '[]') from dropped),
    'loses',
    jsonb_build_object(
      'runs',
      (select count(*) from pgflow.runs as run where run.flow_slug = planned_changes.flow_slug),
      'tasks',
      (
        select count(*)
        from pgflow.runs as run
        inner join pgflow.step_tasks as task
          on task.run_id = run.run_id
        where run.flow_slug = planned_changes.flow_slug
      ),
      'messages',
      (
        select coalesce(sum(depth.messages_total), 0)
        from pgflow.queue_depths(planned_changes.flow_slug) as depth
        where depth.queue_name in (select dropped.queue_name from dropped)
      )
    )
  );
$function$;

comment on function pgflow.planned_changes(text, text, text[]) is
'Internal: the part of a plan about queues that are made and dropped, and runs, tasks and waiting messages that are lost with them. A queue that is dropped and made again is in both lists; one that is gone already, or that somebody made again, is not dropped.';

create function pgflow.planned_collisions(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean
)
returns jsonb
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select jsonb_build_object(
    'collisions',
    coalesce(
      jsonb_agg(
        jsonb_build_object(
          'queue_name', conflict.queue_name,
          'owner_flow', conflict.owner_flow,
          'owner_step', conflict.owner_step
        )
        order by conflict.step_index
      ),
      '[]'
    )
  )
  from pgflow.queue_conflicts(
    planned_collisions.flow_slug,
    planned_collisions.queue_mode,
    planned_collisions.step_slugs,
    planned_collisions.replaces_own_queues
  ) as conflict;
$function$;

comment on function pgflow.planned_collisions(text, text, text[], boolean) is
'Internal: the part of a plan about queues that the flow can''t have, and their owners (null: nobody).';

create function pgflow.recompile_flow(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  step_slugs constant text[] := pgflow.shape_slugs(recompile_flow.shape);
  highest_id bigint;
begin
  -- Before anybody has to wait: whether the new queues can be had at all.
  perform pgflow.check_queues(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs, true);

  highest_id := pgflow.clear_flow(
    recompile_flow.flow_slug,
    format('Flow "%s" was compiled anew, with the loss of its data.', recompile_flow.flow_slug),
    array(
      select wanted.queue_name
      from pgflow.queues_to_own(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs) as wanted
    )
  );

  update pgflow.flows as flow
  set
    queue_mode = recompile_flow.queue_mode,
    generation = nextval('pgflow.flow_generations'),
    opt_max_attempts = coalesce((recompile_flow.shape #>> '{options,maxAttempts}')::numeric::int, 3),
    opt_base_delay = coalesce((recompile_flow.shape #>> '{options,baseDelay}')::numeric::int, 5),
    opt_timeout = coalesce((recompile_flow.shape #>> '{options,timeout}')::numeric::int, 60)
  where flow.flow_slug = recompile_flow.flow_slug;

  perform pgflow.own_queues(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs, highest_id);
  perform pgflow.insert_steps(recompile_flow.flow_slug, recompile_flow.shape, recompile_flow.queue_mode);
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      recompile_flow.flow_slug,
      (
        select count(*)
        from pgflow.queues_to_own(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs) as wanted
      ),
      (select count(*) from pgflow.queues as owner where owner.flow_slug = recompile_flow.flow_slug),
      sqlerrm
    );
end
$function$;

comment on function pgflow.recompile_flow(text, jsonb, text) is
'Internal: replaces the definition, mode and queues of a flow that exists by those of a checked shape, and loses its runs, tasks and messages. Workers of the old generation are told to stop. Raises what check_queues() and own_queues() raise, and PF017 when the lock table is full.';

create function pgflow.refuse_routing(flow_slug text, queue_mode text, step_slugs text[], differences text[])
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  persisted_mode text;
begin
  select flow.queue_mode
  into persisted_mode
  from pgflow.flows as flow
  where flow.flow_slug = refuse_routing.flow_slug;

  raise exception using
    errcode = 'PF007',
    message = format('The routing of flow "%s" is not what was compiled: %s', refuse_routing.flow_slug, differences[1]),
    detail = concat_ws(
      ' ',
      format('Queue mode: persisted "%s", given "%s".', persisted_mode, refuse_routing.queue_mode),
      (
        select string_agg(
          format(
            'Step "%s" at index %s: persisted "%s", derived "%s".',
            derived.step_slug,
            derived.step_index,
            step.queue_name,
            derived.queue_name
          ),
          ' '
          order by derived.step_index
        )
        from pgflow.flow_routes(
          refuse_routing.flow_slug,
          refuse_routing.queue_mode,
          refuse_routing.step_slugs
        ) as derived
        left join pgflow.steps as step
          on step.flow_slug = refuse_routing.flow_slug
          and step.step_slug = derived.step_slug
      ),
      (
        select string_agg(fault.fault, ' ' order by fault.step_index)
        from pgflow.route_faults(refuse_routing.flow_slug) as fault
        where fault.persisted = fault.derived
      )
    ),
    hint = format(
      'Another queue mode or other routes need a new flow slug. A queue that is gone or was made again: '
      'select * from pgflow.repair_queues(%L). Where data may be lost, pass allow_data_loss.',
      refuse_routing.flow_slug
    );
end
$function$;

comment on function pgflow.refuse_routing(text, text, text[], text[]) is
'Internal: raises PF007 with the persisted and the derived route of every step, and what is wrong with the queues.';

create function pgflow.routing_differences(flow_slug text, queue_mode text, step_slugs text[])
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with route as (
    select
      coalesce(persisted.step_index, derived.step_index) as step_index,
      coalesce(persisted.step_slug, derived.step_slug) as step_slug,
      persisted.queue_name as persisted,
      derived.queue_name as derived
    from (
      select step.step_index, step.step_slug, step.queue_name
      from pgflow.steps as step
      where step.flow_slug = routing_differences.flow_slug
    ) as persisted
    full join pgflow.flow_routes(
      routing_differences.flow_slug,
      routing_differences.queue_mode,
      routing_differences.step_slugs
    ) as derived
      on derived.step_slug = persisted.step_slug
  ),
  difference as (
    select
      1 as kind,
      null::int as step_index,
      format(
        'Queue mode: the database has "%s", the call has "%s".',
        flow.queue_mode,
        routing_differences.queue_mode
      ) as sentence
    from pgflow.flows as flow
    where flow.flow_slug = routing_differences.flow_slug
      and flow.queue_mode <> routing_differences.queue_mode
    union all
    select
      2,
      route.step_index,
      format(
        'Route of step "%s" at index %s: persisted %s, derived %s.',
        route.step_slug,
        route.step_index,
        coalesce('"' || route.persisted || '"', 'none'),
        coalesce('"' || route.derived || '"', 'none')
      )
    from route
    where route.persisted is distinct from route.derived
    union all
    select 3, fault.step_index, fault.fault
    from pgflow.route_faults(routing_differences.flow_slug) as fault
    where fault.persisted = fault.derived
  )
  select coalesce(
    array_agg(
      difference.sentence
      order by difference.kind, difference.step_index nulls first, difference.sentence collate "C"
    ),
    '{}'
  )
  from difference;
$function$;

comment on function pgflow.routing_differences(text, text, text[]) is
'Internal: how the persisted mode and routes of a flow differ from those derived for a complete shape, and what is wrong with the queues themselves, a sentence each; empty when all agree.';

create function pgflow.shape_differences(flow_slug text, shape jsonb)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with compared as (
    select coalesce(persisted.step_index, given.step_index) as step_index, persisted, given
    from pgflow.persisted_steps(shape_differences.flow_slug) as persisted
    full join pgflow.shape_steps(shape_differences.shape) as given
      on given.step_index = persisted.step_index
  ),
  field as (
    select compared.step_index, field.position, field.key, field.persisted, field.given
    from compared
    cross join lateral (
      values
      (1, 'slug', to_jsonb((compared.persisted).step_slug), to_jsonb((compared.given).step_slug)),
      (2, 'stepType', to_jsonb((compared.persisted).step_type), to_jsonb((compared.given).step_type)),
      (3, 'dependencies', to_jsonb((compared.persisted).dep_slugs), to_jsonb((compared.given).dep_slugs)),
      (4, 'whenUnmet', to_jsonb((compared.persisted).when_unmet), to_jsonb((compared.given).when_unmet)),
      (5, 'whenExhausted', to_jsonb((compared.persisted).when_exhausted), to_jsonb((compared.given).when_exhausted)),
      (
        6,
        'requiredInputPattern',
        coalesce((compared.persisted).required_input_pattern, '"none"'),
        coalesce((compared.given).required_input_pattern, '"none"')
      ),
      (
        7,
        'forbiddenInputPattern',
        coalesce((compared.persisted).forbidden_input_pattern, '"none"'),
        coalesce((compared.given).forbidden_input_pattern, '"none"')
      )
    ) as field (position, key, persisted, given)
    -- A step that is missing on one side is one difference, not seven.
    where field.position = 1
      or ((compared.persisted).step_slug is not null and (compared.given).step_slug is not null)
  )
  select coalesce(
    array_agg(
      case
        when field.persisted is null then format(
          'Step at index %s: the database has no such step, the shape has %s.',
          field.step_index,
          field.given
        )
        when field.given is null then format(
          'Step at index %s: the database has %s, the shape has no such step.',
          field.step_index,
          field.persisted
        )
        else format(
          'Step at index %s, %s: the database has %s, the shape has %s.',
          field.step_index,
          field.key,
          field.persisted,
          field.given
        )
      end
      order by field.step_index, field.position
    ),
    '{}'
  )
  from field
  where field.persisted is distinct from field.given;
$function$;

comment on function pgflow.shape_differences(text, jsonb) is
'Internal: how the persisted shape of a flow differs from the one given, a sentence each, with the index and both values; empty when they are equal. Runtime options are no part of it.';

create function pgflow.shape_flaws(shape jsonb)
returns table (step_index int, step_slug text, key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  with flaws as (
    select
      null::int as step_index,
      'shape' as key,
      format('must be an object, but is %s', coalesce(pgflow.json_excerpt(shape_flaws.shape), 'null')) as flaw,
      false as is_unknown_key
    where jsonb_typeof(shape_flaws.shape) is distinct from 'object'
    union all
    select
      null,
      'steps',
      format('must be an array, but is %s', coalesce(pgflow.json_excerpt(shape_flaws.shape -> 'steps'), 'missing')),
      false
    where jsonb_typeof(shape_flaws.shape) = 'object'
      and jsonb_typeof(shape_flaws.shape -> 'steps') is distinct from 'array'
    union all
    select null, option.key, option.flaw, option.is_unknown_key
    from pgflow.option_flaws(shape_flaws.shape -> 'options', '{maxAttempts,baseDelay,timeout}') as option
    union all
    select null, part.key, 'is not known', true
    from jsonb_object_keys(
      case when jsonb_typeof(shape_flaws.shape) = 'object' then shape_flaws.shape else '{}' end
    ) as part (key)
    where part.key not in ('steps', 'options')
    union all
    select step.step_index, step.key, step.flaw, step.is_unknown_key
    from pgflow.step_flaws(
      case when jsonb_typeof(shape_flaws.shape -> 'steps') = 'array' then shape_flaws.shape -> 'steps' else '[]' end
    ) as step
  )
  select
    flaws.step_index,
    shape_flaws.shape -> 'steps' -> flaws.step_index ->> 'slug',
    flaws.key,
    flaws.flaw,
    flaws.is_unknown_key
  from flaws
  order by flaws.step_index nulls first, flaws.key collate "C", flaws.flaw collate "C";
$function$;

comment on function pgflow.shape_flaws(jsonb) is
'Internal: everything that is wrong with a flow''s shape, those of the whole first, then step by step. Empty: the shape can be read by shape_steps(). is_unknown_key marks what flow mode only notes.';

create function pgflow.shape_slugs(shape jsonb)
returns text[]
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select array(
    select given.step_slug
    from pgflow.shape_steps(shape_slugs.shape) as given
    order by given.step_index
  );
$function$;

comment on function pgflow.shape_slugs(jsonb) is 'Internal: the step slugs of a checked shape, in order.';

create function pgflow.shape_steps(shape jsonb)
returns table (
  step_index int,
  step_slug text,
  step_type text,
  dep_slugs text[],
  when_unmet text,
  when_exhausted text,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb,
  max_attempts int,
  base_delay int,
  timeout int,
  start_delay int
)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    (item.position - 1)::int,
    item.step ->> 'slug',
    coalesce(item.step ->> 'stepType', 'single'),
    array(
      select distinct dependency.slug collate "C"
      from jsonb_array_elements_text(coalesce(item.step -> 'dependencies', '[]')) as dependency (slug)
      order by dependency.slug collate "C"
    ),
    coalesce(item.step ->> 'whenUnmet', 'skip'),
    coalesce(item.step ->> 'whenExhausted', 'fail'),
    case
      when (item.step #>> '{requiredInputPattern,defined}')::boolean then item.step #> '{requiredInputPattern,value}'
    end,
    case
      when (item.step #>> '{forbiddenInputPattern,defined}')::boolean then item.step #> '{forbiddenInputPattern,value}'
    end,
    (item.step #>> '{options,maxAttempts}')::numeric::int,
    (item.step #>> '{options,baseDelay}')::numeric::int,
    (item.step #>> '{options,timeout}')::numeric::int,
    (item.step #>> '{options,startDelay}')::numeric::int
  from jsonb_array_elements(shape_steps.shape -> 'steps') with ordinality as item (step, position)
  order by item.position;
$function$;

comment on function pgflow.shape_steps(jsonb) is
'Internal: the steps of a shape that check_shape() accepted, in order, with defaults in place of missing keys; dependencies sorted and each once; delays and timeouts in seconds, null where the flow''s apply.';

create function pgflow.step_flaws(steps jsonb)
returns table (step_index int, key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  with step as (
    select
      (item.position - 1)::int as step_index,
      item.step,
      row_number() over (partition by item.step ->> 'slug' order by item.position) as occurrence
    from jsonb_array_elements(step_flaws.steps) with ordinality as item (step, position)
  ),
  -- Everything that a step of the right type holds, and its slug in any case.
  field as (
    select step.step_index, step.occurrence, field.key, field.value
    from step
    cross join lateral jsonb_each(
      case when jsonb_typeof(step.step) = 'object' then '{"slug": null}' || step.step else '{}' end
    ) as field (key, value)
  )
  select
    step.step_index,
    'steps',
    format('must hold objects, but holds %s', pgflow.json_excerpt(step.step)),
    false
  from step
  where jsonb_typeof(step.step) <> 'object'
  union all
  select
    field.step_index,
    'slug',
    case
      when jsonb_typeof(field.value) <> 'string' then
        format('must be a string, but is %s', pgflow.json_excerpt(field.value))
      when field.occurrence > 1 then 'is that of an earlier step'
      else
        'must be 1 to 128 letters, digits or underscores, not starting with a digit, and not "run"; it is '
        || pgflow.json_excerpt(field.value)
    end,
    false
  from field
  where field.key = 'slug'
    and (
      jsonb_typeof(field.value) <> 'string'
      or field.occurrence > 1
      or not pgflow.is_valid_slug(field.value #>> '{}')
    )
  union all
  select field.step_index, field.key, choice.flaw, false
  from field
  cross join lateral (
    select case field.key
      when 'stepType' then pgflow.choice_flaw(field.value, '{single,map}')
      else pgflow.choice_flaw(field.value, '{fail,skip,skip-cascade}')
    end
  ) as choice (flaw)
  where field.key in ('stepType', 'whenUnmet', 'whenExhausted')
    and choice.flaw is not null
  union all
  select field.step_index, pattern.key, pattern.flaw, pattern.is_unknown_key
  from field
  cross join lateral pgflow.pattern_flaws(field.key, field.value) as pattern
  where field.key in ('requiredInputPattern', 'forbiddenInputPattern')
  union all
  select field.step_index, option.key, option.flaw, option.is_unknown_key
  from field
  cross join lateral pgflow.option_flaws(field.value, '{maxAttempts,baseDelay,timeout,startDelay}') as option
  where field.key = 'options'
  union all
  select dependency.step_index, 'dependencies', dependency.flaw, false
  from pgflow.dependency_flaws(step_flaws.steps) as dependency
  union all
  select field.step_index, field.key, 'is not known', true
  from field
  where field.key not in (
    'slug', 'stepType', 'dependencies', 'whenUnmet', 'whenExhausted',
    'requiredInputPattern', 'forbiddenInputPattern', 'options'
  );
$function$;

comment on function pgflow.step_flaws(jsonb) is
'Internal: what is wrong with an array of steps, one row a flaw, with the zero-based index of the step and the key; is_unknown_key marks what flow mode only notes.';

create function pgflow.stop_flow_workers(flow_slug text, reason text)
returns void
language sql
set search_path to pg_catalog, pg_temp
as $function$
  with to_stop as (
    select worker.worker_id
    from pgflow.workers as worker
    where worker.stop_reason is null
      and worker.worker_id in (select own.worker_id from pgflow.flow_workers(stop_flow_workers.flow_slug) as own)
    order by worker.worker_id
    for update of worker
  )
  update pgflow.workers as worker
  set stop_reason = stop_flow_workers.reason
  from to_stop
  where worker.worker_id = to_stop.worker_id;
$function$;

comment on function pgflow.stop_flow_workers(text, text) is
'Internal: gives every worker of a flow a reason to stop; what an earlier one was told stands. Ask while the flow still owns its queues.';

create function pgflow.take_flow(flow_slug text)
returns boolean
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pg_advisory_xact_lock(pgflow.flow_key(take_flow.flow_slug));

  -- Whoever writes to the tables by hand holds this row by a foreign key.
  perform
  from pgflow.flows as flow
  where flow.flow_slug = take_flow.flow_slug
  for update;

  return found;
end
$function$;

comment on function pgflow.take_flow(text) is
'Internal: keeps everybody else away from a flow to the end of the transaction, and tells whether it is there. Waits for transactions that work on it; those that come later wait, and claims give way. Before everything else of the flow: its queues, runs, tasks and messages come after it.';

create function pgflow.uncovered_steps(flow_slug text)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select coalesce(array_agg(step.step_slug order by step.step_index), '{}')
  from pgflow.steps as step
  where step.flow_slug = uncovered_steps.flow_slug
    and not exists (
      select
      from pgflow.queue_workers as worker
      where worker.queue_name = step.queue_name
        and worker.flow_slug = step.flow_slug
        and worker.is_serving
    );
$function$;

comment on function pgflow.uncovered_steps(text) is
'Internal: the steps of a flow, in order, whose queue no live worker serves.';

create function pgflow.calculate_retry_delay(base_delay numeric, attempts_count int)
returns int
language sql
immutable
strict
parallel safe
begin atomic
  -- The exponent is capped so that the power stays computable, the result so that it fits: a year is for ever.
  select least(31536000, floor(base_delay * power(2::numeric, least(attempts_count, 64))))::int;
end;

comment on function pgflow.calculate_retry_delay(numeric, int) is
'Seconds until the next attempt: floor(base_delay * 2 ^ attempts_count), base_delay in seconds, at most a year.';

create view pgflow.dependency_outputs as
select
  dep.flow_slug,
  dep.step_slug,
  state.run_id,
  jsonb_object_agg(dep.dep_slug, state.output) as outputs
from pgflow.deps as dep
inner join pgflow.step_states as state
  on state.step_slug = dep.dep_slug
  and state.flow_slug = dep.flow_slug
  and state.status = 'completed'
group by dep.flow_slug, dep.step_slug, state.run_id;

comment on view pgflow.dependency_outputs is
'Internal: what the dependencies of each step of each run gave, as an object by slug. A skipped dependency is absent, and so is the row when none has completed. A view, so that it is planned as part of the query that asks for one step of one run.';

create function pgflow.ready_steps(run_ids uuid[], step_slugs text[])
returns table (run_id uuid, step_slug text, step_index int, decision text)
language sql
stable
begin atomic
  select
    state.run_id,
    state.step_slug,
    step.step_index,
    case
      when not (
        coalesce(condition.input @> step.required_input_pattern, true)
        and not coalesce(condition.input @> step.forbidden_input_pattern, false)
      ) then step.when_unmet
      when state.initial_tasks = 0 then 'complete'
      else 'start'
    end as decision
  from unnest(run_ids, step_slugs) as named (run_id, step_slug)
  cross join lateral (
    select
      every.flow_slug,
      every.input
    from pgflow.runs as every
    where every.run_id = named.run_id
      and every.status = 'started'
    limit 1
  ) as run
  cross join lateral (
    select
      every.run_id,
      every.flow_slug,
      every.step_slug,
      every.initial_tasks
    from pgflow.step_states as every
    where every.run_id = named.run_id
      and every.step_slug = named.step_slug
      and every.status = 'created'
    limit 1
  ) as state
  cross join lateral (
    select every.*
    from pgflow.steps as every
    where every.flow_slug = state.flow_slug
      and every.step_slug = state.step_slug
    limit 1
  ) as step
  cross join lateral (
    -- Gathered only where a pattern asks for it: most steps have none, and outputs can be large.
    select
      case
        when step.required_input_pattern is null and step.forbidden_input_pattern is null then null
        when step.deps_count = 0 then run.input
        else coalesce(
          (
            select gathered.outputs
            from pgflow.dependency_outputs as gathered
            where gathered.run_id = state.run_id
              and gathered.flow_slug = state.flow_slug
              and gathered.step_slug = state.step_slug
          ),
          '{}'
        )
      end as input
  ) as condition;
end;

comment on function pgflow.ready_steps(uuid[], text[]) is
'Internal: of steps that wait for nothing any more, those that have neither started nor ended and whose run goes on, each with what is to become of it: start, complete (an empty map), or what its whenUnmet says when its condition is not met (skip, skip-cascade, fail).';

create function pgflow.advance_runs(run_ids uuid[], step_slugs text[])
returns pgflow.message_ref[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  ready_runs uuid[] := run_ids;
  ready_slugs text[] := step_slugs;
  all_start boolean;
  endings pgflow.step_ending[];
  followers pgflow.consequences;
  leaving pgflow.message_ref[] := '{}';
begin
  -- One round a layer of steps that end without a task; each round ends at least one step, so it comes to an end. The
  -- others start when no ending can change that any more.
  loop
    select array_agg(ready.run_id), array_agg(ready.step_slug), bool_and(ready.decision = 'start')
    into ready_runs, ready_slugs, all_start
    from pgflow.ready_steps(ready_runs, ready_slugs) as ready;

    exit when all_start is not false;

    with ready as materialized (
      select * from pgflow.ready_steps(ready_runs, ready_slugs)
    ),
    -- A condition that fails the run makes the other decisions of this round pointless.
    failing as (
      select distinct on (ready.run_id) ready.run_id, ready.step_slug
      from ready
      where ready.decision = 'fail'
      order by ready.run_id, ready.step_index
    )
    select
      array_agg(
        row(
          ready.run_id,
          ready.step_slug,
          ready.decision,
          case when ready.decision in ('skip', 'skip-cascade') then 'condition_unmet' end,
          case when ready.decision = 'fail' then 'Condition not met' end
        )::pgflow.step_ending
      )
    into endings
    from ready
    left join failing on failing.run_id = ready.run_id
    where ready.decision <> 'start'
      and (failing.run_id is null or failing.step_slug = ready.step_slug);

    followers := pgflow.end_steps(endings);
    leaving := leaving || followers.leaving;
    ready_runs := ready_runs || followers.run_ids;
    ready_slugs := ready_slugs || followers.step_slugs;
  end loop;

  if ready_runs is not null then
    perform pgflow.start_steps(ready_runs, ready_slugs);
  end if;

  return leaving;
end
$function$;

comment on function pgflow.advance_runs(uuid[], text[]) is
'Internal: brings runs as far as they can go without a worker. Takes steps that wait for nothing any more, ends those that need no task (unmet conditions, empty maps) until none is left, then starts the others. The caller holds the locks of the runs. Returns the messages that must leave their queues.';

create function pgflow.complete_steps(run_ids uuid[], step_slugs text[], tasks int[])
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  completed_runs uuid[];
  completed_steps text[];
begin
  with counted as (
    update pgflow.step_states as state
    set
      remaining_tasks = coalesce(state.remaining_tasks, 0) - ended.tasks,
      status = case when coalesce(state.remaining_tasks, 0) = ended.tasks then 'completed' else state.status end,
      started_at = coalesce(state.started_at, clock_timestamp()),
      completed_at = case when coalesce(state.remaining_tasks, 0) = ended.tasks then clock_timestamp() end,
      output = case
        when coalesce(state.remaining_tasks, 0) > ended.tasks then null
        when state.initial_tasks = 0 then '[]'
        when step.step_type = 'map' then (
          select jsonb_agg(task.output order by task.task_index)
          from pgflow.step_tasks as task
          where task.run_id = state.run_id
            and task.step_slug = state.step_slug
        )
        else (
          select task.output
          from pgflow.step_tasks as task
          where task.run_id = state.run_id
            and task.step_slug = state.step_slug
        )
      end
    from (
      select every.run_id, every.step_slug, every.tasks
      from unnest(run_ids, step_slugs, complete_steps.tasks) as every (run_id, step_slug, tasks)
      limit cardinality(run_ids)
    ) as ended
    cross join pgflow.steps as step
    where state.run_id = ended.run_id
      and state.step_slug = ended.step_slug
      and step.flow_slug = state.flow_slug
      and step.step_slug = state.step_slug
    returning state.run_id, state.step_slug, state.status
  )
  select array_agg(counted.run_id), array_agg(counted.step_slug)
  into completed_runs, completed_steps
  from counted
  where counted.status = 'completed';

  if completed_runs is null then
    return null;
  end if;

  perform pgflow.emit_step_events(completed_runs, completed_steps);

  return pgflow.release_dependents(completed_runs, completed_steps);
end
$function$;

comment on function pgflow.complete_steps(uuid[], text[], int[]) is
'Internal: takes so many finished tasks off each of these steps, and completes those that have none left: steps whose last task has a result, and empty maps (0 tasks). The output of a single step is its task''s; that of a map the array of all outputs in task order. Returns what follows from the completed ones; null when there are none.';

create function pgflow.complete_task(run_id uuid, step_slug text, task_index int, output jsonb)
returns setof pgflow.step_tasks
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.settle_tasks(
    array[
      row(
        complete_task.run_id, complete_task.step_slug, complete_task.task_index, null, 'success', complete_task.output, null
      )::pgflow.task_result
    ]
  );

  return query
  select task.*
  from pgflow.step_tasks as task
  where task.run_id = complete_task.run_id
    and task.step_slug = complete_task.step_slug
    and task.task_index = complete_task.task_index;
end
$function$;

comment on function pgflow.complete_task(uuid, text, int, jsonb) is
'Completes a started task with its output and returns the task''s row as it now is. A late or repeated call changes nothing; an unknown task gives no row. As in pgflow 0.14; complete_tasks() does many at once and checks the attempt.';

create function pgflow.complete_tasks(results jsonb)
returns table (run_id uuid, step_slug text, task_index int, status text)
language sql
set search_path to pg_catalog, pg_temp
as $function$
  select settled.*
  from pgflow.settle_tasks(pgflow.read_results(results, 'success')) as settled;
$function$;

comment on function pgflow.complete_tasks(jsonb) is
'Completes many tasks in one call: an array of {"run_id", "step_slug", "task_index", "attempt", "output"}. attempt, when given, is a fencing token: a result of another attempt than the current one changes nothing. One row an element, in order; status is completed, failed (the output is not the array that a dependent map needs), superseded (the attempt is no longer the current one), ended (the task, its step or its run ended before) or unknown. Of a repeated task the first result counts. Raises PF019 for an element that can''t be read; then no task was changed.';

create function pgflow.create_runs(flow_slug text, inputs jsonb[], run_ids uuid[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_indexscan to on
set enable_nestloop to on
set enable_seqscan to off
set enable_bitmapscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  step_count int;
  root_maps boolean;
  bad record;
  root_runs uuid[];
  root_steps text[];
begin
  -- Keeps the definition as it is until the runs are there.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(create_runs.flow_slug));

  if not exists (select from pgflow.flows as flow where flow.flow_slug = create_runs.flow_slug) then
    perform pgflow.refuse_unknown_flow(create_runs.flow_slug);
  end if;

  select count(*), coalesce(bool_or(step.step_type = 'map' and step.deps_count = 0), false)
  into step_count, root_maps
  from pgflow.steps as step
  where step.flow_slug = create_runs.flow_slug;

  select run.position, jsonb_typeof(run.input) as kind
  into bad
  from unnest(inputs) with ordinality as run (input, position)
  where run.input is null
    or (root_maps and jsonb_typeof(run.input) <> 'array')
  order by run.position
  limit 1;

  if found then
    raise exception using
      errcode = 'PF019',
      message = case
        when root_maps and bad.kind is null
          then format('Flow %s has root map steps but input is NULL', create_runs.flow_slug)
        when root_maps
          then format('Flow %s has root map steps but input is not an array (got %s)', create_runs.flow_slug, bad.kind)
        else format('Input of a run of flow "%s" is NULL.', create_runs.flow_slug)
      end,
      detail = format('It is input %s of %s; no run was started.', bad.position, cardinality(inputs)),
      hint = case
        when root_maps then 'A root map step makes one task for each element of the input: pass a JSON array.'
        else 'Pass a JSON value, for example {}.'
      end;
  end if;

  insert into pgflow.runs (run_id, flow_slug, input, remaining_steps, started_at)
  select
    run.run_id,
    create_runs.flow_slug,
    run.input,
    step_count,
    clock_timestamp()
  from unnest(run_ids, inputs) with ordinality as run (run_id, input, position)
  order by run.position;

  insert into pgflow.step_states (flow_slug, run_id, step_slug, remaining_deps, initial_tasks, created_at)
  select
    step.flow_slug,
    run.run_id,
    step.step_slug,
    step.deps_count,
    case
      when step.step_type = 'single' then 1
      when step.deps_count = 0 then jsonb_array_length(run.input)
    end,
    clock_timestamp()
  from unnest(run_ids, inputs) with ordinality as run (run_id, input, position)
  inner join pgflow.steps as step on step.flow_slug = create_runs.flow_slug
  order by run.position, step.step_index;

  perform pgflow.emit_run_events(run_ids);

  if step_count = 0 then
    update pgflow.runs as run
    set
      status = 'completed',
      completed_at = clock_timestamp(),
      output = '{}'
    where run.run_id = any(run_ids);

    perform pgflow.emit_run_events(run_ids);
    return;
  end if;

  select array_agg(run.id), array_agg(step.step_slug)
  into root_runs, root_steps
  from unnest(run_ids) as run (id)
  cross join pgflow.steps as step
  where step.flow_slug = create_runs.flow_slug
    and step.deps_count = 0;

  -- Nothing of a new run has a message yet that could have to leave its queue.
  perform pgflow.advance_runs(root_runs, root_steps);
end
$function$;

comment on function pgflow.create_runs(text, jsonb[], uuid[]) is
'Internal: makes runs of a flow, one for each input, and brings them as far as they can go without a worker. Raises PF018 for an unknown flow and PF019 for an input that is null or, before a root map, not an array; then no run is made.';

create function pgflow.emit_event(event text, payload jsonb)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  case pgflow.event_sink()
    when 'realtime' then
      execute 'select realtime.send($1, $2, $3, false)'
      using payload, event, 'pgflow:run:' || (payload ->> 'run_id');
    when 'notify' then
      -- Never the output or a message: a notification over 8,000 bytes would make the completion fail.
      perform pg_notify(
        'pgflow',
        jsonb_strip_nulls(
          jsonb_build_object(
            'event', event,
            'run_id', payload -> 'run_id',
            'step_slug', payload -> 'step_slug',
            'status', payload -> 'status'
          )
        )::text
      );
    else
      null;
  end case;
end
$function$;

comment on function pgflow.emit_event(text, jsonb) is
'Hands one event to realtime.send where that exists in a trusted schema (topic pgflow:run:<run_id>), else to the channel pgflow where the setting pgflow.events is notify, else nowhere. Payloads and names are those of pgflow 0.14.';

create function pgflow.emit_run_events(run_ids uuid[], error_messages text[] default null)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  if pgflow.event_sink() is null then
    return;
  end if;

  perform
    pgflow.emit_event(
      'run:' || run.status,
      jsonb_build_object(
        'event_type', 'run:' || run.status,
        'run_id', run.run_id,
        'flow_slug', run.flow_slug,
        'status', run.status
      )
      || case run.status
        when 'started' then jsonb_build_object(
          'input', run.input,
          'remaining_steps', run.remaining_steps,
          'started_at', run.started_at
        )
        when 'completed' then jsonb_build_object(
          'output', run.output,
          'completed_at', run.completed_at
        )
        else jsonb_strip_nulls(jsonb_build_object('error_message', changed.error_message))
          || jsonb_build_object('failed_at', run.failed_at)
      end
    )
  from unnest(run_ids, error_messages) as changed (run_id, error_message)
  inner join pgflow.runs as run on run.run_id = changed.run_id;
end
$function$;

comment on function pgflow.emit_run_events(uuid[], text[]) is
'Internal: sends the event of the status that each run now has. error_messages goes in step with run_ids.';

create function pgflow.emit_step_events(run_ids uuid[], step_slugs text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  if pgflow.event_sink() is null then
    return;
  end if;

  perform pgflow.emit_event(changed.event, changed.payload)
  from (
    select
      'step:' || state.step_slug || ':' || state.status as event,
      jsonb_build_object(
        'event_type', 'step:' || state.status,
        'run_id', state.run_id,
        'step_slug', state.step_slug,
        'status', state.status
      )
      || case state.status
        when 'started' then jsonb_build_object(
          'started_at', state.started_at,
          'remaining_tasks', state.remaining_tasks,
          'remaining_deps', state.remaining_deps
        )
        when 'completed' then jsonb_build_object(
          'output', state.output,
          'completed_at', state.completed_at
        )
        || case
          when state.initial_tasks = 0 then jsonb_build_object(
            'started_at', state.started_at,
            'remaining_tasks', 0,
            'remaining_deps', 0
          )
          else '{}'
        end
        when 'failed' then jsonb_build_object(
          'error_message', state.error_message,
          'failed_at', state.failed_at
        )
        else jsonb_build_object(
          'flow_slug', state.flow_slug,
          'skip_reason', state.skip_reason,
          'skipped_at', state.skipped_at
        )
        || jsonb_strip_nulls(jsonb_build_object('error_message', state.error_message))
      end as payload
    from unnest(run_ids, step_slugs) as ended (run_id, step_slug)
    inner join pgflow.step_states as state
      on state.run_id = ended.run_id
      and state.step_slug = ended.step_slug
    inner join pgflow.steps as step
      on step.flow_slug = state.flow_slug
      and step.step_slug = state.step_slug
    order by state.run_id, step.step_index
    offset 0
  ) as changed;
end
$function$;

comment on function pgflow.emit_step_events(uuid[], text[]) is
'Internal: sends the event of the status that each step of a run now has, in the order of the steps.';

create function pgflow.end_steps(endings pgflow.step_ending[])
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  completing constant pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending = 'complete');
  skipping constant pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending in ('skip', 'skip-cascade'));
  failing constant pgflow.step_ending[] := array(select step from unnest(endings) as step where step.ending = 'fail');
  completed pgflow.consequences;
  skipped pgflow.consequences;
  leaving pgflow.message_ref[];
begin
  if completing <> '{}' then
    completed := pgflow.complete_steps(
      array(select step.run_id from unnest(completing) as step),
      array(select step.step_slug from unnest(completing) as step),
      array_fill(0, array[cardinality(completing)])
    );
  end if;

  if skipping <> '{}' then
    skipped := pgflow.skip_steps(skipping);
  end if;

  if failing <> '{}' then
    leaving := pgflow.fail_steps(failing);
  end if;

  return row(
    skipped.leaving || leaving,
    completed.run_ids || skipped.run_ids,
    completed.step_slugs || skipped.step_slugs
  )::pgflow.consequences;
end
$function$;

comment on function pgflow.end_steps(pgflow.step_ending[]) is
'Internal: ends steps that need no task or no longer any, with all that follows for their tasks, dependents and runs. Completions come first and failures last, so that what a batch achieved counts before its run fails. Returns what follows.';

create function pgflow.event_sink()
returns text
language sql
stable
begin atomic
  select
    case
      -- Asked first, since it is cheap: most servers have no such schema.
      when to_regnamespace('realtime') is not null
        and to_regprocedure('realtime.send(jsonb, text, text, boolean)') is not null
        and pgflow.is_trusted_schema('realtime') then 'realtime'
      when current_setting('pgflow.events', true) = 'notify' then 'notify'
    end;
end;

comment on function pgflow.event_sink() is
'Where events go: realtime (realtime.send exists, in a schema that is_trusted_schema()), notify (the setting pgflow.events is notify), or null: nowhere, and then no event is built at all.';

create function pgflow.fail_steps(endings pgflow.step_ending[])
returns pgflow.message_ref[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[];
  messages text[];
  leaving pgflow.message_ref[];
begin
  update pgflow.step_states as state
  set
    status = 'failed',
    failed_at = clock_timestamp(),
    error_message = ending.message
  from (select every.* from unnest(endings) as every limit cardinality(endings)) as ending
  where state.run_id = ending.run_id
    and state.step_slug = ending.step_slug;

  perform pgflow.emit_step_events(array_agg(ending.run_id), array_agg(ending.step_slug))
  from unnest(endings) as ending;

  -- Several steps of a run can fail in one batch; the first one speaks for the run.
  select array_agg(first_failure.run_id), array_agg(first_failure.message)
  into run_ids, messages
  from (
    select distinct on (ending.run_id) ending.run_id, ending.message
    from unnest(endings) with ordinality as ending (run_id, step_slug, ending, reason, message, position)
    order by ending.run_id, ending.position
  ) as first_failure;

  update pgflow.runs as run
  set
    status = 'failed',
    failed_at = clock_timestamp()
  where run.run_id = any(run_ids);

  with ended as (
    update pgflow.step_tasks as task
    set
      status = 'cancelled',
      cancelled_at = clock_timestamp()
    where task.run_id = any(run_ids)
      and pgflow.task_is_active(task.status)
    returning task.queue_name, task.message_id
  )
  select coalesce(array_agg(row(ended.queue_name, ended.message_id)::pgflow.message_ref), '{}')
  into leaving
  from ended;

  perform pgflow.emit_run_events(run_ids, messages);

  return leaving;
end
$function$;

comment on function pgflow.fail_steps(pgflow.step_ending[]) is
'Internal: fails steps and with them their runs. Every task of such a run that was still active, on whichever queue, becomes cancelled. Returns the messages of these.';

create function pgflow.fail_task(run_id uuid, step_slug text, task_index int, error_message text)
returns setof pgflow.step_tasks
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.settle_tasks(
    array[
      row(
        fail_task.run_id, fail_task.step_slug, fail_task.task_index, null, 'failure', null, fail_task.error_message
      )::pgflow.task_result
    ]
  );

  return query
  select task.*
  from pgflow.step_tasks as task
  where task.run_id = fail_task.run_id
    and task.step_slug = fail_task.step_slug
    and task.task_index = fail_task.task_index;
end
$function$;

comment on function pgflow.fail_task(uuid, text, int, text) is
'Reports a failed attempt of a started task and returns the task''s row as it now is: queued again for a retry, or failed. A late or repeated call changes nothing; an unknown task gives no row. As in pgflow 0.14; fail_tasks() does many at once and checks the attempt.';

create function pgflow.fail_tasks(results jsonb)
returns table (run_id uuid, step_slug text, task_index int, status text)
language sql
set search_path to pg_catalog, pg_temp
as $function$
  select settled.*
  from pgflow.settle_tasks(pgflow.read_results(results, 'failure')) as settled;
$function$;

comment on function pgflow.fail_tasks(jsonb) is
'Reports many failed attempts in one call: an array of {"run_id", "step_slug", "task_index", "attempt", "error_message"}. While attempts are left the task is queued again, to be read after base delay * 2 ^ attempts seconds; else it is failed and its step''s whenExhausted decides. One row an element, in order; status is retrying, failed, skipped (the attempts are used up and the step was skipped; the task itself is failed), superseded, ended or unknown. attempt and errors as in complete_tasks().';

create function pgflow.failure_endings(verdicts pgflow.task_verdict[])
returns pgflow.step_ending[]
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  return array(
    select
      row(
        judged.run_id,
        judged.step_slug,
        case when judged.violates then 'fail' else step.when_exhausted end,
        case when not judged.violates and step.when_exhausted <> 'fail' then 'handler_failed' end,
        case
          when judged.violates then format(
            '[TYPE_VIOLATION] Map step %s expects array input but dependency %s produced %s',
            (
              select target.step_slug
              from pgflow.deps as dep
              inner join pgflow.steps as target
                on target.flow_slug = dep.flow_slug
                and target.step_slug = dep.step_slug
                and target.step_type = 'map'
              where dep.flow_slug = step.flow_slug
                and dep.dep_slug = step.step_slug
              order by target.step_index
              limit 1
            ),
            judged.step_slug,
            coalesce(jsonb_typeof(judged.wrong_output), 'null')
          )
          else judged.error_message
        end
      )::pgflow.step_ending
    from (
      select
        verdict.run_id,
        verdict.step_slug,
        bool_or(verdict.verdict = 'violates') as violates,
        (array_agg(verdict.output order by verdict.position) filter (where verdict.verdict = 'violates'))[1] as wrong_output,
        (array_agg(verdict.error_message order by verdict.position) filter (where verdict.verdict = 'exhausted'))[1]
          as error_message,
        min(verdict.position) as position
      from unnest(verdicts) as verdict
      where verdict.verdict in ('violates', 'exhausted')
      group by verdict.run_id, verdict.step_slug
    ) as judged
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = judged.run_id limit 1
    ) as run
    inner join pgflow.steps as step
      on step.flow_slug = run.flow_slug
      and step.step_slug = judged.step_slug
    order by judged.position
  );
end
$function$;

comment on function pgflow.failure_endings(pgflow.task_verdict[]) is
'Internal: how the steps end whose tasks failed for good, in the order of the results: an output of the wrong type fails the run, attempts that are used up are for whenExhausted to decide.';

create function pgflow.get_run_with_states(run_id uuid)
returns jsonb
language sql
stable
security definer
set search_path to pg_catalog, pg_temp
as $function$
  select
    jsonb_build_object(
      'run', to_jsonb(run),
      'steps', coalesce(
        (
          select jsonb_agg(to_jsonb(state) order by step.step_index)
          from pgflow.step_states as state
          inner join pgflow.steps as step
            on step.flow_slug = state.flow_slug
            and step.step_slug = state.step_slug
          where state.run_id = run.run_id
        ),
        '[]'
      )
    )
  from pgflow.runs as run
  where run.run_id = get_run_with_states.run_id;
$function$;

comment on function pgflow.get_run_with_states(uuid) is
'A run and its step states as {"run": row, "steps": [rows in step order]}; null for an unknown run. Needs no right on any table, so that clients can be granted just this. As in pgflow 0.14.';

create function pgflow.judge_results(results pgflow.task_result[])
returns pgflow.task_verdict[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Locks the tasks in the order of step and task, and judges each as it is once its lock is there: all else that is read
  -- changes only under the locks of the runs, which the caller holds.
  return array(
    select
      row(
        named.position,
        named.run_id,
        named.step_slug,
        named.task_index,
        named.step_index,
        task.queue_name,
        task.message_id,
        case
          when task.run_id is null then 'unknown'
          when named.turn > 1 then 'repeated'
          when named.attempt <> task.attempts_count then 'superseded'
          when not pgflow.task_is_active(task.status)
            or named.state_status <> 'started'
            or named.run_status <> 'started' then 'ended'
          -- Queued again: the attempt that this result belongs to was given up.
          when task.status = 'queued' then 'superseded'
          when named.kind = 'stalled' and pgflow.recovery_boundary(
            task.started_at, named.timeout, task.lease_extended_until
          ) > clock_timestamp() then 'superseded'
          when named.kind = 'success' then
            case
              when named.step_type = 'single'
                and coalesce(jsonb_typeof(named.output), 'null') <> 'array'
                and exists (
                  select
                  from pgflow.deps as dep
                  cross join lateral (
                    select found.step_type
                    from pgflow.steps as found
                    where found.flow_slug = dep.flow_slug
                      and found.step_slug = dep.step_slug
                    limit 1
                  ) as target
                  where dep.flow_slug = named.flow_slug
                    and dep.dep_slug = named.step_slug
                    and target.step_type = 'map'
                ) then 'violates'
              else 'completed'
            end
          when named.kind = 'failure' and task.attempts_count < named.max_attempts then 'retrying'
          else 'exhausted'
        end,
        named.output,
        named.error_message,
        case
          when named.kind = 'failure' then
            clock_timestamp()
            + make_interval(secs => pgflow.calculate_retry_delay(named.base_delay, task.attempts_count))
        end,
        named.kind = 'stalled'
      )::pgflow.task_verdict
    from (
      select
        result.*,
        run.flow_slug,
        run.status as run_status,
        state.status as state_status,
        step.step_index,
        step.step_type,
        step.timeout,
        step.max_attempts,
        step.base_delay,
        row_number() over (
          partition by result.run_id, step.step_index, result.task_index order by result.position
        ) as turn
      from unnest(results) with ordinality as result (
        run_id, step_slug, task_index, attempt, kind, output, error_message, position
      )
      left join lateral (
        select found.flow_slug, found.status
        from pgflow.runs as found
        where found.run_id = result.run_id
        limit 1
      ) as run on true
      left join lateral (
        select found.*
        from pgflow.step_options as found
        where found.flow_slug = run.flow_slug
          and found.step_slug = result.step_slug
        limit 1
      ) as step on true
      left join lateral (
        select found.status
        from pgflow.step_states as found
        where found.run_id = result.run_id
          and found.step_slug = result.step_slug
        limit 1
      ) as state on true
      order by result.run_id, step.step_index, result.task_index, result.position
      limit cardinality(results)
    ) as named
    left join lateral (
      select found.*
      from pgflow.step_tasks as found
      where found.run_id = named.run_id
        and found.step_slug = named.step_slug
        and found.task_index = named.task_index
      limit 1
      for no key update
    ) as task on true
  );
end
$function$;

comment on function pgflow.judge_results(pgflow.task_result[]) is
'Internal: locks the tasks that results name and tells what each result means for its task: whether the attempt is still the current one, whether the task may be retried, whether the output has the type that a dependent map needs. Changes nothing; the caller holds the locks of the runs.';

create function pgflow.read_results(results jsonb, kind text)
returns pgflow.task_result[]
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
declare
  read pgflow.task_result[];
  bad record;
begin
  if results is null then
    return '{}';
  end if;

  if jsonb_typeof(results) <> 'array' then
    raise exception using
      errcode = 'PF019',
      message = format('Results must be a JSON array, got %s.', jsonb_typeof(results)),
      detail = 'No task was changed.',
      hint = 'Pass [{"run_id": ..., "step_slug": ..., "task_index": ..., "attempt": ..., "output" or "error_message": ...}].';
  end if;

  begin
    read := array(
      select
        row(
          (element.result ->> 'run_id')::uuid,
          element.result ->> 'step_slug',
          (element.result ->> 'task_index')::int,
          (element.result ->> 'attempt')::int,
          kind,
          element.result -> 'output',
          element.result ->> 'error_message'
        )::pgflow.task_result
      from jsonb_array_elements(results) with ordinality as element (result, position)
      -- What can be converted may still not be what was meant.
      where length(element.result ->> 'run_id') = 36
        and jsonb_typeof(element.result -> 'step_slug') = 'string'
        and (element.result ->> 'task_index')::int between 0 and 999999999
        and coalesce((element.result ->> 'attempt')::int between 0 and 999999999, true)
        and element.result - array['run_id', 'step_slug', 'task_index', 'attempt', 'output', 'error_message'] = '{}'
        and case kind
          when 'success' then element.result ? 'output'
          else coalesce(jsonb_typeof(element.result -> 'error_message'), 'null') in ('string', 'null')
            and (element.result ? 'error_message' or not element.result ? 'output')
        end
      order by element.position
    );

    if cardinality(read) = jsonb_array_length(results) then
      return read;
    end if;
  exception
    when data_exception then
      null;
  end;

  -- Which one it is, and why, is worth finding out only now.
  select element.position - 1 as index, fault.key, fault.wanted
  into bad
  from jsonb_array_elements(results) with ordinality as element (result, position)
  cross join lateral (
    select
      case
        when jsonb_typeof(element.result) <> 'object' then null
        when coalesce(element.result ->> 'run_id', '')
          !~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then 'run_id'
        when jsonb_typeof(element.result -> 'step_slug') is distinct from 'string' then 'step_slug'
        when coalesce(element.result ->> 'task_index', '') !~ '^[0-9]{1,9}$' then 'task_index'
        when coalesce(element.result ->> 'attempt', '0') !~ '^[0-9]{1,9}$' then 'attempt'
        when kind = 'failure'
          and coalesce(jsonb_typeof(element.result -> 'error_message'), 'null') not in ('string', 'null') then 'error_message'
        -- A result of the other kind, or with a misspelled key, must not be taken for one of this.
        when kind = 'success' and not element.result ? 'output' then 'output'
        when kind = 'failure' and element.result ? 'output' and not element.result ? 'error_message' then 'error_message'
        else coalesce(
          (
            select min(given.key collate "C")
            from jsonb_object_keys(case jsonb_typeof(element.result) when 'object' then element.result else '{}' end) as given (key)
            where given.key not in ('run_id', 'step_slug', 'task_index', 'attempt', 'output', 'error_message')
          ),
          ''
        )
      end as key
  ) as checked
  cross join lateral (
    select
      checked.key,
      case checked.key
        when 'run_id' then 'a UUID'
        when 'step_slug' then 'a string'
        when 'task_index' then 'a whole number from 0'
        when 'attempt' then 'a whole number or absent'
        when 'output' then 'given'
        when 'error_message' then 'a string or null'
        else case when checked.key is null then 'an object' else 'left out' end
      end as wanted
  ) as fault
  where fault.key is distinct from ''
  order by element.position
  limit 1;

  raise exception using
    errcode = 'PF019',
    message = format(
      'Result %s of %s can''t be read: %s must be %s.',
      bad.index, jsonb_array_length(results), coalesce('"' || bad.key || '"', 'it'), bad.wanted
    ),
    detail = format('It holds %s there. No task was changed.', coalesce(jsonb_typeof(results -> bad.index::int -> bad.key), 'nothing of use')),
    hint = 'Give back run_id, step_slug, task_index and attempt as poll_tasks() gave them.';
end
$function$;

comment on function pgflow.read_results(jsonb, text) is
'Internal: reads the argument of complete_tasks() (kind success) and fail_tasks() (kind failure). Raises PF019 naming the first element that can''t be read and its key.';

create function pgflow.release_dependents(
  run_ids uuid[], step_slugs text[], leaving pgflow.message_ref[] default null
)
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  followers pgflow.consequences;
  completed_runs uuid[];
begin
  with released as (
    update pgflow.step_states as dependent
    set
      remaining_deps = dependent.remaining_deps - waiting.deps,
      initial_tasks = coalesce(waiting.tasks, dependent.initial_tasks)
    from (
      select
        ended.run_id,
        dep.step_slug,
        count(*)::int as deps,
        -- A map has one dependency at most, so there is at most one value to take.
        max(
          case
            when target.step_type = 'single' then null
            when ended_state.status = 'skipped' then 0
            when source.step_type = 'map' then ended_state.initial_tasks
            else jsonb_array_length(ended_state.output)
          end
        ) as tasks
      from unnest(run_ids, step_slugs) as ended (run_id, step_slug)
      cross join lateral (
        select found.*
        from pgflow.step_states as found
        where found.run_id = ended.run_id
          and found.step_slug = ended.step_slug
        limit 1
      ) as ended_state
      cross join lateral (
        select found.step_type
        from pgflow.steps as found
        where found.flow_slug = ended_state.flow_slug
          and found.step_slug = ended_state.step_slug
        limit 1
      ) as source
      inner join pgflow.deps as dep
        on dep.flow_slug = ended_state.flow_slug
        and dep.dep_slug = ended_state.step_slug
      cross join lateral (
        select found.step_type
        from pgflow.steps as found
        where found.flow_slug = dep.flow_slug
          and found.step_slug = dep.step_slug
        limit 1
      ) as target
      group by ended.run_id, dep.step_slug
      limit 1000000000 * cardinality(run_ids)::bigint
    ) as waiting
    where dependent.run_id = waiting.run_id
      and dependent.step_slug = waiting.step_slug
      and dependent.status = 'created'
    returning dependent.run_id, dependent.step_slug, dependent.remaining_deps
  )
  select release_dependents.leaving, array_agg(released.run_id), array_agg(released.step_slug)
  into followers
  from released
  where released.remaining_deps = 0;

  -- A skip or a completion lowers the count of its run once for every step that ended; at 0 nothing is left to do.
  with counted as (
    update pgflow.runs as run
    set
      remaining_steps = run.remaining_steps - ended.steps,
      status = case when run.remaining_steps = ended.steps then 'completed' else run.status end,
      completed_at = case when run.remaining_steps = ended.steps then clock_timestamp() end,
      output = case
        when run.remaining_steps = ended.steps then (
          select coalesce(jsonb_object_agg(state.step_slug, state.output), '{}')
          from pgflow.step_states as state
          where state.run_id = run.run_id
            and state.status = 'completed'
            and not exists (
              select
              from pgflow.deps as dep
              where dep.flow_slug = state.flow_slug
                and dep.dep_slug = state.step_slug
            )
        )
      end
    from (
      select ended.run_id, count(*)::int as steps
      from unnest(run_ids) as ended (run_id)
      group by ended.run_id
      limit cardinality(run_ids)
    ) as ended
    where run.run_id = ended.run_id
    returning run.run_id, run.status
  )
  select array_agg(counted.run_id) into completed_runs from counted where counted.status = 'completed';

  if completed_runs is not null then
    perform pgflow.emit_run_events(completed_runs);
  end if;

  return followers;
end
$function$;

comment on function pgflow.release_dependents(uuid[], text[], pgflow.message_ref[]) is
'Internal: for steps that were completed or skipped, takes one dependency from each dependent that still waits, tells dependent maps how many tasks they have, lowers the remaining steps of the runs, and completes those that have none left; their output holds that of every completed step without dependents, by slug. Returns the dependents that are ready, with the messages passed in.';

create function pgflow.settle_tasks(results pgflow.task_result[])
returns table (run_id uuid, step_slug text, task_index int, status text)
language plpgsql
set search_path to pg_catalog, pg_temp
-- Plans are made once a session, perhaps on empty tables, and must stay right when these have grown: so rows are looked
-- up by key, one by one, for each thing that ended, here and in all that this calls. A limit that the planner can't
-- estimate lets it expect few rows of an array, and a lateral one keeps it from turning a look-up round. No statement
-- asks for a table in the order of an index: then a plain index scan would read all of one that counts as empty.
set plan_cache_mode to force_generic_plan
set enable_indexscan to on
set enable_nestloop to on
set enable_seqscan to off
set enable_bitmapscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  run_ids uuid[];
  verdicts pgflow.task_verdict[];
  step_runs uuid[];
  step_slugs text[];
  completed int[];
  has_failures boolean;
  has_others boolean;
  followers pgflow.consequences;
  ready_runs uuid[];
  ready_steps text[];
  leaving pgflow.message_ref[];
  returning_messages pgflow.message_ref[];
  returning_at timestamptz[];
begin
  -- Locks in the order that all of the engine keeps: flows, runs, then tasks. Whoever holds a run's lock is the only
  -- one to change its steps.
  run_ids := array(
    select distinct result.run_id from unnest(results) as result where result.run_id is not null order by result.run_id
  );

  perform pg_advisory_xact_lock_shared(pgflow.flow_key(flow.flow_slug))
  from (
    select distinct run.flow_slug collate "C" as flow_slug
    from unnest(run_ids) as named (run_id)
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = named.run_id limit 1
    ) as run
    order by flow_slug
  ) as flow;

  perform
  from unnest(run_ids) with ordinality as named (run_id, position)
  cross join lateral (
    select run.status from pgflow.runs as run where run.run_id = named.run_id limit 1 for no key update
  ) as locked;

  -- A statement of its own, so that it sees what was committed while the locks were waited for.
  verdicts := pgflow.judge_results(results);

  update pgflow.step_tasks as task
  set
    status = case verdict.verdict
      when 'completed' then 'completed'
      when 'retrying' then 'queued'
      else 'failed'
    end,
    output = case when verdict.verdict in ('completed', 'violates') then verdict.output end,
    error_message = case
      when verdict.verdict = 'completed' then task.error_message
      when verdict.verdict = 'violates' then format(
        '[TYPE_VIOLATION] Produced %s instead of array', coalesce(jsonb_typeof(verdict.output), 'null')
      )
      else verdict.error_message
    end,
    started_at = case when verdict.verdict <> 'retrying' then task.started_at end,
    completed_at = case when verdict.verdict = 'completed' then clock_timestamp() end,
    failed_at = case when verdict.verdict in ('violates', 'exhausted') then clock_timestamp() end,
    permanently_stalled_at = case when verdict.stalled then clock_timestamp() end
  from (select every.* from unnest(verdicts) as every limit cardinality(verdicts)) as verdict
  where task.run_id = verdict.run_id
    and task.step_slug = verdict.step_slug
    and task.task_index = verdict.task_index
    and verdict.verdict in ('completed', 'violates', 'retrying', 'exhausted');

  -- A task that ended before has no business on a queue: its message goes too, should it still be there.
  leaving := array(
    select row(verdict.queue_name, verdict.message_id)::pgflow.message_ref
    from unnest(verdicts) as verdict
    where verdict.verdict in ('completed', 'violates', 'exhausted', 'ended')
  );

  select
    array_agg(counted.run_id order by counted.run_id, counted.step_index),
    array_agg(counted.step_slug order by counted.run_id, counted.step_index),
    array_agg(counted.completed order by counted.run_id, counted.step_index),
    coalesce(bool_or(counted.has_failures), false),
    coalesce(sum(counted.completed), 0) < cardinality(verdicts)
  into step_runs, step_slugs, completed, has_failures, has_others
  from (
    select
      verdict.run_id,
      verdict.step_slug,
      verdict.step_index,
      count(*) filter (where verdict.verdict = 'completed')::int as completed,
      bool_or(verdict.verdict <> 'completed') as has_failures
    from unnest(verdicts) as verdict
    where verdict.verdict in ('completed', 'violates', 'exhausted')
    group by verdict.run_id, verdict.step_slug, verdict.step_index
  ) as counted;

  if step_runs is not null then
    -- A step with a failure has a task more than it has results here, so it is counted but never completed by this.
    followers := pgflow.complete_steps(step_runs, step_slugs, completed);
    ready_runs := followers.run_ids;
    ready_steps := followers.step_slugs;
  end if;

  if has_failures then
    followers := pgflow.end_steps(pgflow.failure_endings(verdicts));
    leaving := leaving || followers.leaving;
    ready_runs := ready_runs || followers.run_ids;
    ready_steps := ready_steps || followers.step_slugs;
  end if;

  if ready_runs is not null then
    leaving := leaving || pgflow.advance_runs(ready_runs, ready_steps);
  end if;

  -- Messages come last in the order of locks. A task that goes back for a retry while its step or run ends in the same
  -- batch has left with the others.
  perform pgflow.archive_messages(leaving);

  -- Most batches are nothing but completions.
  if not has_others then
    return query
    select verdict.run_id, verdict.step_slug, verdict.task_index, verdict.verdict
    from unnest(verdicts) as verdict
    order by verdict.position;
    return;
  end if;

  select
    array_agg(row(verdict.queue_name, verdict.message_id)::pgflow.message_ref),
    array_agg(verdict.visible_at)
  into returning_messages, returning_at
  from unnest(verdicts) as verdict
  where verdict.verdict = 'retrying';

  if returning_messages is not null then
    perform pgflow.set_visibility(returning_messages, returning_at);
  end if;

  return query
  select
    verdict.run_id,
    verdict.step_slug,
    verdict.task_index,
    case
      when verdict.verdict = 'exhausted' and state.status = 'skipped' then 'skipped'
      when verdict.verdict in ('violates', 'exhausted') then 'failed'
      -- What the element would get if it came in a call of its own, right after this one.
      when verdict.verdict = 'repeated' and pgflow.task_is_active(task.status) then 'superseded'
      when verdict.verdict = 'repeated' then 'ended'
      -- Another result of the batch ended its step or run: nothing is left to retry.
      when verdict.verdict = 'retrying' and not pgflow.task_is_active(task.status) then 'ended'
      else verdict.verdict
    end
  from unnest(verdicts) as verdict
  left join lateral (
    select found.status
    from pgflow.step_tasks as found
    where found.run_id = verdict.run_id
      and found.step_slug = verdict.step_slug
      and found.task_index = verdict.task_index
    limit 1
  ) as task on true
  left join lateral (
    select found.status
    from pgflow.step_states as found
    where found.run_id = verdict.run_id
      and found.step_slug = verdict.step_slug
    limit 1
  ) as state on true
  order by verdict.position;
end
$function$;

comment on function pgflow.settle_tasks(pgflow.task_result[]) is
'Internal: the one way in which results end tasks. Locks, judges the whole batch, writes the tasks, ends the steps whose last task ended, advances the runs, and only then touches messages. One row a result, in order.';

create function pgflow.skip_steps(endings pgflow.step_ending[])
returns pgflow.consequences
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[];
  step_slugs text[];
  leaving pgflow.message_ref[];
begin
  with recursive reached as (
    select
      run.flow_slug,
      ending.run_id,
      ending.step_slug,
      ending.ending = 'skip-cascade' as cascades,
      ending.reason,
      ending.message
    from unnest(endings) as ending
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = ending.run_id limit 1
    ) as run
    union
    select
      reached.flow_slug,
      reached.run_id,
      dep.step_slug,
      true,
      'dependency_skipped',
      null
    from reached
    inner join pgflow.deps as dep
      on dep.flow_slug = reached.flow_slug
      and dep.dep_slug = reached.step_slug
    where reached.cascades
  ),
  -- A step that is skipped for a reason of its own keeps that reason though a cascade reaches it too.
  chosen as (
    select distinct on (reached.run_id, reached.step_slug) reached.*
    from reached
    order by reached.run_id, reached.step_slug, (reached.reason = 'dependency_skipped')
  ),
  skipped as (
    update pgflow.step_states as state
    set
      status = 'skipped',
      skip_reason = chosen.reason,
      error_message = chosen.message,
      skipped_at = clock_timestamp(),
      remaining_tasks = null
    from chosen
    where state.run_id = chosen.run_id
      and state.step_slug = chosen.step_slug
      and state.status in ('created', 'started')
    returning state.run_id, state.step_slug
  )
  select array_agg(skipped.run_id), array_agg(skipped.step_slug)
  into run_ids, step_slugs
  from skipped;

  with ended as (
    update pgflow.step_tasks as task
    set
      status = 'skipped',
      skipped_at = clock_timestamp()
    from (
      select every.run_id, every.step_slug
      from unnest(run_ids, step_slugs) as every (run_id, step_slug)
      limit cardinality(run_ids)
    ) as skipped
    where task.run_id = skipped.run_id
      and task.step_slug = skipped.step_slug
      and pgflow.task_is_active(task.status)
    returning task.queue_name, task.message_id
  )
  select coalesce(array_agg(row(ended.queue_name, ended.message_id)::pgflow.message_ref), '{}')
  into leaving
  from ended;

  perform pgflow.emit_step_events(run_ids, step_slugs);

  return pgflow.release_dependents(run_ids, step_slugs, leaving);
end
$function$;

comment on function pgflow.skip_steps(pgflow.step_ending[]) is
'Internal: skips steps, and for skip-cascade everything downstream of them. Tasks that were still active become skipped. Returns what follows, with the messages of these tasks.';

create function pgflow.start_flow(flow_slug text, input jsonb, run_id uuid default null)
returns setof pgflow.runs
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  new_run_id uuid := coalesce(start_flow.run_id, pgflow.new_run_id());
begin
  perform pgflow.create_runs(start_flow.flow_slug, array[start_flow.input], array[new_run_id]);

  return query
  select run.* from pgflow.runs as run where run.run_id = new_run_id;
end
$function$;

comment on function pgflow.start_flow(text, jsonb, uuid) is
'Starts a run of a flow and returns its row. input is any JSON value; flows with a root map step need an array. run_id may be chosen by the caller. Raises PF018 (unknown flow), PF019 (bad input), PF007 (a queue of the flow is gone). As in pgflow 0.14.';

create function pgflow.start_flow_with_states(flow_slug text, input jsonb, run_id uuid default null)
returns jsonb
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $function$
declare
  new_run_id uuid := coalesce(start_flow_with_states.run_id, pgflow.new_run_id());
begin
  perform pgflow.create_runs(start_flow_with_states.flow_slug, array[start_flow_with_states.input], array[new_run_id]);

  return pgflow.get_run_with_states(new_run_id);
end
$function$;

comment on function pgflow.start_flow_with_states(text, jsonb, uuid) is
'Starts a run as start_flow() does and returns it as get_run_with_states() does. Needs no right on any table, so that clients can be granted just this. As in pgflow 0.14.';

create function pgflow.start_flows(flow_slug text, inputs jsonb[])
returns setof pgflow.runs
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
as $function$
declare
  new_run_ids uuid[] := array(select pgflow.new_run_id() from unnest(inputs));
begin
  if new_run_ids = '{}' then
    return;
  end if;

  perform pgflow.create_runs(start_flows.flow_slug, start_flows.inputs, new_run_ids);

  return query
  select run.*
  from unnest(new_run_ids) with ordinality as new_run (run_id, position)
  cross join lateral (select found.* from pgflow.runs as found where found.run_id = new_run.run_id limit 1) as run
  order by new_run.position;
end
$function$;

comment on function pgflow.start_flows(text, jsonb[]) is
'Starts one run of a flow for each input, all of them or none, and returns their rows in the order of the inputs. Null or no inputs give no rows. Raises PF018 (unknown flow), PF019 (bad input, with its position), PF007 (a queue of the flow is gone).';

create function pgflow.start_steps(run_ids uuid[], step_slugs text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
  msg_ids bigint[];
begin
  for batch in
    with started as (
      update pgflow.step_states as state
      set
        status = 'started',
        started_at = clock_timestamp(),
        remaining_tasks = state.initial_tasks
      from (
        select every.run_id, every.step_slug
        from unnest(run_ids, step_slugs) as every (run_id, step_slug)
        limit cardinality(run_ids)
      ) as ready
      where state.run_id = ready.run_id
        and state.step_slug = ready.step_slug
      returning state.run_id, state.flow_slug, state.step_slug, state.initial_tasks as task_count
    )
    select
      step.queue_name,
      step.flow_slug,
      array_agg(
        row(started.run_id, started.step_slug, task.task_index, step.start_delay)::pgflow.new_task
        order by started.run_id, step.step_index, task.task_index
      ) as tasks
    from started
    cross join lateral (
      select every.flow_slug, every.step_index, every.queue_name, every.start_delay
      from pgflow.step_options as every
      where every.flow_slug = started.flow_slug
        and every.step_slug = started.step_slug
      limit 1
    ) as step
    cross join lateral generate_series(0, started.task_count - 1) as task (task_index)
    group by step.queue_name, step.flow_slug
    order by step.queue_name collate "C"
  loop
    if to_regclass(format('pgmq.%I', 'q_' || batch.queue_name)) is null then
      raise exception using
        errcode = 'PF007',
        message = format('Queue "%s" of flow "%s" is gone from PGMQ.', batch.queue_name, batch.flow_slug),
        detail = format(
          'Steps that were to start on it: %s. Nothing was changed.', (select string_agg(distinct task.step_slug, ', ') from unnest(batch.tasks) as task)
        ),
        hint = format('Make it again with select * from pgflow.repair_queues(%L).', batch.flow_slug);
    end if;

    -- Rows get their ids in the order in which they come, so the ids in their order are those of the tasks in theirs.
    execute format(
      $sql$
        with sent as (
          insert into pgmq.%I (vt, message)
          select
            clock_timestamp() + make_interval(secs => task.start_delay),
            jsonb_build_object(
              'flow_slug', $2, 'run_id', task.run_id, 'step_slug', task.step_slug, 'task_index', task.task_index
            )
          from unnest($1) as task
          returning msg_id
        )
        select array_agg(msg_id order by msg_id) from sent
      $sql$,
      'q_' || batch.queue_name
    )
    into msg_ids
    using batch.tasks, batch.flow_slug;

    insert into pgflow.step_tasks (flow_slug, run_id, step_slug, task_index, message_id, queue_name, queued_at)
    select
      batch.flow_slug,
      task.run_id,
      task.step_slug,
      task.task_index,
      task.message_id,
      batch.queue_name,
      clock_timestamp()
    from rows from (unnest(batch.tasks), unnest(msg_ids))
      as task (run_id, step_slug, task_index, start_delay, message_id);
  end loop;

  perform pgflow.emit_step_events(run_ids, step_slugs);
end
$function$;

comment on function pgflow.start_steps(uuid[], text[]) is
'Internal: starts steps that are ready and need tasks: one task and one message a map element or single step, all messages of a queue in one statement, ids ascending with task_index. Raises PF007 when a queue is gone.';

create function pgflow.build_inputs(tasks pgflow.step_tasks[])
returns table (
  message_id bigint,
  flow_slug text,
  run_id uuid,
  step_slug text,
  task_index int,
  attempts_count int,
  input jsonb,
  flow_input jsonb
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- In PL/pgSQL, where the plan is kept: every claim comes here.
  return query
  select
    task.message_id,
    claimed.flow_slug,
    claimed.run_id,
    claimed.step_slug,
    task.task_index,
    task.attempts_count,
    case
      when step.step_type = 'map' then given.input -> (task.task_index - claimed.first_index)
      else coalesce(given.input, '{}')
    end,
    given.flow_input
  from (
    select
      every.flow_slug,
      every.run_id,
      every.step_slug,
      min(every.task_index) as first_index,
      max(every.task_index) as last_index,
      array_agg(every.message_id) as message_ids,
      array_agg(every.task_index) as task_indexes,
      array_agg(every.attempts_count) as attempts_counts,
      array_agg(every.ordinality) as positions
    from unnest(tasks) with ordinality as every
    group by every.flow_slug, every.run_id, every.step_slug
  ) as claimed
  cross join lateral (
    select found.step_type, found.deps_count
    from pgflow.steps as found
    where found.flow_slug = claimed.flow_slug
      and found.step_slug = claimed.step_slug
    limit 1
  ) as step
  cross join lateral (
    select
      case
        when step.step_type = 'single' then (
          select gathered.outputs
          from pgflow.dependency_outputs as gathered
          where step.deps_count > 0
            and gathered.run_id = claimed.run_id
            and gathered.flow_slug = claimed.flow_slug
            and gathered.step_slug = claimed.step_slug
        )
        -- The source of a map is read once for all its tasks in the batch, and only the stretch that they need:
        -- reading it for each task would make the cost of a task grow with the size of its map.
        else jsonb_path_query_array(
          case
            when step.deps_count = 0 then (
              select run.input from pgflow.runs as run where run.run_id = claimed.run_id
            )
            else (
              select state.output
              from pgflow.deps as dep
              inner join pgflow.step_states as state
                on state.run_id = claimed.run_id
                and state.step_slug = dep.dep_slug
              where dep.flow_slug = claimed.flow_slug
                and dep.step_slug = claimed.step_slug
            )
          end,
          'strict $[$first to $last]',
          jsonb_build_object('first', claimed.first_index, 'last', claimed.last_index)
        )
      end as input,
      case
        when step.step_type = 'single' and step.deps_count = 0 then (
          select run.input from pgflow.runs as run where run.run_id = claimed.run_id
        )
      end as flow_input
    offset 0
  ) as given
  cross join lateral unnest(claimed.message_ids, claimed.task_indexes, claimed.attempts_counts, claimed.positions)
    as task (message_id, task_index, attempts_count, position)
  order by task.position;
end
$function$;

comment on function pgflow.build_inputs(pgflow.step_tasks[]) is
'Internal: what the handlers of tasks get, in the order of the tasks: for a map its element, for a root step an empty object and the run''s input beside it, else the outputs of the dependencies. Fails where PostgreSQL can''t hold one of them.';

create function pgflow.attempt_inputs(tasks pgflow.step_tasks[])
returns table (
  message_id bigint,
  flow_slug text,
  run_id uuid,
  step_slug text,
  task_index int,
  attempts_count int,
  input jsonb,
  flow_input jsonb,
  flaw text
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  task pgflow.step_tasks;
begin
  begin
    return query
    select built.*, null::text from pgflow.build_inputs(tasks) as built;
    return;
  exception
    -- Outputs that PostgreSQL can hold one by one may be more than it can hold together.
    when program_limit_exceeded then
      null;
  end;

  -- One by one, so that only the tasks suffer whose input it is.
  foreach task in array tasks
  loop
    begin
      return query
      select built.*, null::text from pgflow.build_inputs(array[task]) as built;
    exception
      when program_limit_exceeded then
        return query
        select
          task.message_id, task.flow_slug, task.run_id, task.step_slug, task.task_index, task.attempts_count,
          null::jsonb, null::jsonb, 'its input can''t be built: ' || sqlerrm;
    end;
  end loop;
end
$function$;

comment on function pgflow.attempt_inputs(pgflow.step_tasks[]) is
'Internal: build_inputs(), with a flaw in place of an input that PostgreSQL can''t hold, so that such a task can fail and does not keep the others from being claimed.';

create function pgflow.candidate_messages(queue_name text, max_messages int)
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set jit to off
as $function$
declare
  seen_at timestamptz := clock_timestamp();
  head bigint[];
  only_queued boolean;
  candidates bigint[];
begin
  begin
    execute format(
      $sql$
        select array_agg(head.msg_id order by head.msg_id), bool_and(task.status is not distinct from 'queued')
        from (
          select message.msg_id, message.vt
          from pgmq.%I as message
          where message.vt <= $1
          order by message.vt, message.msg_id
          limit $3
        ) as head
        -- Each id names at most one task. Saying so keeps the planner from reading all tasks of the queue instead.
        left join lateral (
          select found.status
          from pgflow.step_tasks as found
          where found.queue_name = $2
            and found.message_id = head.msg_id
          limit 1
        ) as task on true
      $sql$,
      'q_' || candidate_messages.queue_name
    )
    into head, only_queued
    using seen_at, candidate_messages.queue_name, max_messages;
  exception
    -- Somebody dropped the queue under us, or put something else in its place. Whether that was a recompilation, the
    -- worker's row tells.
    when undefined_table or undefined_column or undefined_function or wrong_object_type then
      return null;
  end;

  if head is null then
    return '{}';
  end if;

  -- Anything but plain queued work is looked at as it stands, by whoever sees it first.
  if not only_queued then
    return head;
  end if;

  -- Locking the tasks here lets several workers of one queue pass each other instead of picking the same head. The
  -- inner limit bounds what one look can cost while others hold the head, and leaves room for many workers that each
  -- keep the transaction of their claim open; the outer one stops locking at enough.
  execute format(
    $sql$
      select array_agg(candidate.msg_id order by candidate.msg_id)
      from (
        select head.msg_id
        from (
          select message.msg_id
          from pgmq.%I as message
          where message.vt <= $1
          order by message.vt, message.msg_id
          limit greatest(1000, 8::bigint * $3)
        ) as head
        cross join lateral (
          select found.task_index
          from pgflow.step_tasks as found
          where found.queue_name = $2
            and found.message_id = head.msg_id
            and found.status = 'queued'
          limit 1
          for no key update skip locked
        ) as task
        limit $3
      ) as candidate
    $sql$,
    'q_' || candidate_messages.queue_name
  )
  into candidates
  using seen_at, candidate_messages.queue_name, max_messages;

  return coalesce(candidates, '{}');
end
$function$;

comment on function pgflow.candidate_messages(text, int) is
'Internal: ids of up to max_messages visible messages of a queue that this session could claim, oldest first. Their messages are not locked. Null when the queue is gone.';

create function pgflow.check_subscription(worker_id uuid)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
  standing record;
begin
  select found_standing.errcode, found_standing.reason
  into standing
  from pgflow.worker_standing(check_subscription.worker_id) as found_standing;

  if not found then
    return;
  end if;

  select candidate.*
  into worker
  from pgflow.workers as candidate
  where candidate.worker_id = check_subscription.worker_id;

  raise exception using
    errcode = standing.errcode,
    message = format(
      'Worker %s can''t claim tasks: %s', coalesce(check_subscription.worker_id::text, 'null'), standing.reason
    ),
    detail = case
      when worker.worker_id is null then 'Its row in pgflow.workers was never written, or was removed.'
      else format(
        'Its subscription is queue "%s", flow %s, step %s, generation %s; its function is "%s".',
        worker.queue_name,
        coalesce('"' || worker.flow_slug || '"', 'none'),
        coalesce('"' || worker.step_slug || '"', 'none'),
        coalesce(worker.generation::text, 'none'),
        worker.function_name
      )
    end,
    hint = case standing.errcode
      when 'PF012' then format(
        'Find out why, then run %s and start the worker again.',
        pgflow.way_to_enable(worker.function_name, worker.flow_slug)
      )
      when 'PF010' then 'Register the worker with select pgflow.register_worker(...) before it polls.'
      else 'Stop this worker. A new one compiles the flow and registers under a new id.'
    end;
end
$function$;

comment on function pgflow.check_subscription(uuid) is
'Internal: refuses a worker that may not claim. Raises PF010 (it never registered), PF012 (its function is disabled, or its flow fenced) or PF013 (unknown, stopped, told to stop, or of an older generation).';

create function pgflow.claim_batch(worker pgflow.workers, msg_ids bigint[], reads int)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_indexscan to off
set enable_indexonlyscan to off
set jit to off
as $function$
declare
  ids bigint[];
  classes text[];
  reasons text[];
  locked bigint[];
  unsupported bigint[];
begin
  locked := pgflow.lock_tasks((worker).queue_name, msg_ids);

  -- A statement of its own: what a session committed before we got its tasks' locks is seen here.
  select
    array_agg(message.msg_id order by message.position),
    array_agg(message.class order by message.position),
    array_agg(message.reason order by message.position),
    array_agg(message.msg_id order by message.position) filter (where message.class = 'unsupported')
  into ids, classes, reasons, unsupported
  from pgflow.classify_messages((worker).queue_name, (worker).flow_slug, (worker).step_slug, msg_ids)
    with ordinality as message (msg_id, class, reason, run_id, step_slug, task_index, position);

  if unsupported is not null then
    perform pgflow.refuse_batch(worker, ids, unsupported);

    return query
    select
      message.msg_id,
      case when message.class = 'unsupported' then 'unsupported' else 'released' end,
      case when message.class = 'unsupported' then message.reason else 'its batch held unsupported work' end,
      null::text, null::uuid, null::text, null::int, null::int, null::jsonb, null::jsonb
    from unnest(ids, classes, reasons) with ordinality as message (msg_id, class, reason, position)
    order by message.position;
    return;
  end if;

  if 'started' = any(classes) then
    perform pgflow.defer_messages(
      (worker).queue_name,
      array(
        select message.msg_id
        from unnest(ids, classes) as message (msg_id, class)
        where message.class = 'started'
          and message.msg_id in (select unnest(locked))
      )
    );
  end if;

  if 'terminal' = any(classes) then
    perform pgflow.clear_terminal_messages(
      (worker).queue_name,
      array(
        select message.msg_id
        from unnest(ids, classes) as message (msg_id, class)
        where message.class = 'terminal'
      )
    );
  end if;

  return query
  select
    message.msg_id,
    coalesce(
      attempt.outcome,
      case
        when message.class in ('claimable', 'started') then 'deferred'
        when message.class = 'terminal' then 'archived'
        else 'gone'
      end
    ),
    case
      when attempt.outcome is not null then attempt.reason
      when message.class in ('claimable', 'started') and message.msg_id not in (select unnest(locked))
        then 'another session is working on the task'
      else message.reason
    end,
    attempt.flow_slug,
    attempt.run_id,
    attempt.step_slug,
    attempt.task_index,
    attempt.attempt,
    attempt.input,
    attempt.flow_input
  from unnest(ids, classes, reasons) with ordinality as message (msg_id, class, reason, position)
  -- Not gathered before they go out: the inputs of a batch may be more than fits into one value.
  left join pgflow.claim_queued(
    worker,
    array(
      select claimable.msg_id
      from unnest(ids, classes) as claimable (msg_id, class)
      where claimable.class = 'claimable'
        and claimable.msg_id in (select unnest(locked))
    ),
    reads
  ) as attempt on attempt.msg_id = message.msg_id
  order by message.position;
end
$function$;

comment on function pgflow.claim_batch(pgflow.workers, bigint[], int) is
'Internal: classifies a whole batch under locks, then either claims, defers and archives, or refuses it as a whole. The caller has checked the worker and holds the locks of its flow and of its row. reads as in set_visibility().';

create function pgflow.claim_queued(worker pgflow.workers, msg_ids bigint[], reads int)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_indexscan to on
set enable_nestloop to on
set enable_seqscan to off
set enable_bitmapscan to off
set enable_hashjoin to off
set enable_mergejoin to off
set enable_material to off
set jit to off
as $function$
declare
  queued pgflow.step_tasks[];
  timeouts int[];
  claimed_at timestamptz;
  hidden int;
  claimed pgflow.step_tasks[];
begin
  -- In the order in which results lock tasks, as in lock_tasks(). A row that is locked is read as it is then, and its status tells
  -- what became of its step and run, too.
  select
    array_agg(locked.task order by named.position),
    array_agg(named.timeout order by named.position)
  into queued, timeouts
  from (
    select
      passed.position,
      found.run_id,
      found.step_slug,
      found.task_index,
      step.step_index,
      step.timeout
    from unnest(claim_queued.msg_ids) with ordinality as passed (msg_id, position)
    cross join lateral (
      select task.run_id, task.step_slug, task.task_index
      from pgflow.step_tasks as task
      where task.queue_name = (worker).queue_name
        and task.message_id = passed.msg_id
        and task.flow_slug = (worker).flow_slug
        and ((worker).step_slug is null or task.step_slug = (worker).step_slug)
      limit 1
    ) as found
    cross join lateral (
      select every.step_index, every.timeout
      from pgflow.step_options as every
      where every.flow_slug = (worker).flow_slug
        and every.step_slug = found.step_slug
      limit 1
    ) as step
    cross join lateral (
      select state.status
      from pgflow.step_states as state
      where state.run_id = found.run_id
        and state.step_slug = found.step_slug
        and state.status = 'started'
      limit 1
    ) as state
    cross join lateral (
      select run.status from pgflow.runs as run where run.run_id = found.run_id and run.status = 'started' limit 1
    ) as run
    order by found.run_id, step.step_index, found.task_index
    limit cardinality(claim_queued.msg_ids)
  ) as named
  cross join lateral (
    select task
    from pgflow.step_tasks as task
    where task.run_id = named.run_id
      and task.step_slug = named.step_slug
      and task.task_index = named.task_index
      and task.status = 'queued'
    limit 1
    for no key update skip locked
  ) as locked;

  if cardinality(queued) is distinct from cardinality(msg_ids) then
    return;
  end if;

  claimed_at := clock_timestamp();
  hidden := pgflow.set_queue_visibility(
    (worker).queue_name,
    msg_ids,
    array(select pgflow.recovery_boundary(claimed_at, every.timeout, null) from unnest(timeouts) as every (timeout)),
    reads
  );

  -- Some are not on the queue, or named twice. Those that are there have been counted as read.
  if hidden <> cardinality(msg_ids) then
    return query
    select * from pgflow.claim_batch(worker, msg_ids, 0);
    return;
  end if;

  with started as (
    update pgflow.step_tasks as task
    set
      status = 'started',
      attempts_count = task.attempts_count + 1,
      started_at = claimed_at,
      last_worker_id = (worker).worker_id,
      lease_extended_until = null
    from (
      select every.run_id, every.step_slug, every.task_index, every.ordinality as position
      from unnest(queued) with ordinality as every
      limit cardinality(queued)
    ) as named
    where task.run_id = named.run_id
      and task.step_slug = named.step_slug
      and task.task_index = named.task_index
    returning task, named.position
  )
  select array_agg(started.task order by started.position)
  into claimed
  from started;

  return query
  select
    given.message_id,
    'claimed',
    given.flaw,
    given.flow_slug,
    given.run_id,
    given.step_slug,
    given.task_index,
    given.attempts_count,
    given.input,
    given.flow_input
  from pgflow.attempt_inputs(claimed) as given;
end
$function$;

comment on function pgflow.claim_queued(pgflow.workers, bigint[], int) is
'Internal: claims a batch that is nothing but free messages of queued tasks of the subscription, as most are: the outcome that claim_batch() comes to, without its detour. No rows, and nothing changed, when anything else is among them. The caller has checked the worker and holds the locks of its flow and of its row. reads as in set_visibility().';

create function pgflow.claim_tasks(queue_name text, flow_slug text, step_slug text, msg_ids bigint[], worker_id uuid)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
begin
  perform pgflow.check_subscription(claim_tasks.worker_id);

  select known.* into worker from pgflow.workers as known where known.worker_id = claim_tasks.worker_id;

  if (worker.queue_name, worker.flow_slug, worker.step_slug)
    is distinct from (claim_tasks.queue_name, claim_tasks.flow_slug, claim_tasks.step_slug) then
    raise exception using
      errcode = 'PF010',
      message = format('Worker %s did not register for this subscription.', claim_tasks.worker_id),
      detail = format(
        'The call names queue %s, flow %s, step %s; the worker registered for queue %s, flow %s, step %s.',
        coalesce(quote_ident(claim_tasks.queue_name), 'null'),
        coalesce(quote_ident(claim_tasks.flow_slug), 'null'),
        coalesce(quote_ident(claim_tasks.step_slug), 'null'),
        quote_ident(worker.queue_name),
        quote_ident(worker.flow_slug),
        coalesce(quote_ident(worker.step_slug), 'null')
      ),
      hint = 'Pass queue, flow and step as register_worker() returned them. No message was changed.';
  end if;

  if not exists (select from unnest(msg_ids) as passed (msg_id) where passed.msg_id is not null) then
    return;
  end if;

  if not pgflow.lock_subscription(worker) then
    return query
    select
      passed.msg_id,
      'deferred',
      'the flow is being recompiled, deleted or repaired',
      null::text, null::uuid, null::text, null::int, null::int, null::jsonb, null::jsonb
    from unnest(msg_ids) with ordinality as passed (msg_id, position)
    where passed.msg_id is not null
    group by passed.msg_id
    order by min(passed.position);
    return;
  end if;

  -- Looked for under the lock of the flow, so that it can't go before the batch is done.
  if to_regclass(format('pgmq.%I', 'q_' || worker.queue_name)) is null then
    perform pgflow.refuse_missing_queue(worker);
  end if;

  return query
  select * from pgflow.claim_queued(worker, msg_ids, 0);

  if not found then
    return query
    select * from pgflow.claim_batch(worker, msg_ids, 0);
  end if;
end
$function$;

comment on function pgflow.claim_tasks(text, text, text, bigint[], uuid) is
'Claims the tasks of messages that the caller has read. queue_name, flow_slug, step_slug (null for a flow-mode flow) must be what the worker registered for. One row for every distinct id, in the order passed; null ids are ignored. Outcomes: claimed (one attempt, message hidden until the recovery boundary; with a reason and without an input where PostgreSQL can''t hold the outputs of all dependencies together: fail it), deferred (in progress; hidden, no attempt), archived (ended), gone (not in the queue). A message in the queue that is no exact task makes the whole batch fatal: nothing is claimed, the outcomes are unsupported and released, the worker''s function is disabled and one warning (PF011) goes out; commit before you act on that. Raises PF010 (wrong subscription), PF012 (function disabled), PF013 (worker unknown, stopped or of an older generation), PF007 (the queue is gone) before any message changes.';

create function pgflow.classify_messages(queue_name text, flow_slug text, step_slug text, msg_ids bigint[])
returns setof pgflow.message_class
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.check_queue(classify_messages.queue_name);

  -- The pair (queue, id) alone names the task; body and visibility of the message are not asked.
  return query execute format(
    $sql$
      select
        asked.msg_id,
        verdict.class,
        case verdict.class
          when 'claimable' then 'task is queued'
          when 'started' then format('attempt %%s of the task is in progress', task.attempts_count)
          when 'terminal' then
            case
              when not pgflow.task_is_active(task.status) then format('task is %%s', task.status)
              when run.status <> 'started' then format('run is %%s', run.status)
              else format('step is %%s', state.status)
            end
          when 'gone' then
            case
              when task.run_id is null then 'neither a message nor a task has this id'
              else format('the message of this %%s task is not in the queue', task.status)
            end
          else
            case
              when task.run_id is null then 'no task has this message'
              else format('message is of step "%%s" of flow "%%s"', task.step_slug, task.flow_slug)
            end
        end as reason,
        task.run_id,
        task.step_slug,
        task.task_index
      from (
        select passed.msg_id, min(passed.position) as position
        from unnest($1) with ordinality as passed (msg_id, position)
        where passed.msg_id is not null
        group by passed.msg_id
      ) as asked
      -- Each of these gives at most one row. Saying so keeps the planner, whatever it believes about these tables, from
      -- reading one as a whole where a few look-ups do.
      left join lateral (
        select found.msg_id from pgmq.%I as found where found.msg_id = asked.msg_id limit 1
      ) as message on true
      left join lateral (
        select found.*
        from pgflow.step_tasks as found
        where found.queue_name = $2
          and found.message_id = asked.msg_id
        limit 1
      ) as task on true
      left join lateral (
        select found.status
        from pgflow.step_states as found
        where found.run_id = task.run_id
          and found.step_slug = task.step_slug
        limit 1
      ) as state on true
      left join lateral (
        select found.status from pgflow.runs as found where found.run_id = task.run_id limit 1
      ) as run on true
      cross join lateral (
        select
          coalesce(
            task.flow_slug = $3 and ($4 is null or task.step_slug = $4),
            false
          ) as is_exact,
          pgflow.task_is_active(task.status) and state.status = 'started' and run.status = 'started' as is_active
      ) as task_is
      cross join lateral (
        select
          case
            when task_is.is_exact and not task_is.is_active then 'terminal'
            when message.msg_id is null then 'gone'
            when not task_is.is_exact then 'unsupported'
            when task.status = 'queued' then 'claimable'
            else 'started'
          end as class
      ) as verdict
      order by asked.position
    $sql$,
    'q_' || classify_messages.queue_name
  )
  using msg_ids, classify_messages.queue_name, classify_messages.flow_slug, classify_messages.step_slug;
exception
  -- Dropped after the check.
  when undefined_table then
    perform pgflow.check_queue(classify_messages.queue_name);
    raise;
end
$function$;

comment on function pgflow.classify_messages(text, text, text, bigint[]) is
'What each message is to a subscription (queue, flow, step; step null: a flow-mode flow''s whole queue): claimable, started, terminal, gone or unsupported, with the reason and the task. One row for every distinct id, in the order passed; null ids are ignored. Read-only. Raises PF019 for a queue that does not exist.';

create function pgflow.clear_terminal_messages(queue_name text, msg_ids bigint[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- A task that is still active under a step or run that has ended has nothing to wait for: it ends as they did.
  update pgflow.step_tasks as task
  set
    status = case when state.status = 'skipped' then 'skipped' else 'cancelled' end,
    skipped_at = case when state.status = 'skipped' then clock_timestamp() end,
    cancelled_at = case when state.status <> 'skipped' then clock_timestamp() end
  from (
    select active.run_id, active.step_slug, active.task_index
    from unnest(msg_ids) as passed (msg_id)
    cross join lateral (
      select every.run_id, every.step_slug, every.task_index
      from pgflow.step_tasks as every
      where every.queue_name = clear_terminal_messages.queue_name
        and every.message_id = passed.msg_id
        and pgflow.task_is_active(every.status)
      limit 1
      for no key update skip locked
    ) as active
    limit cardinality(msg_ids)
  ) as leftover
  inner join pgflow.step_states as state
    on state.run_id = leftover.run_id
    and state.step_slug = leftover.step_slug
  where task.run_id = leftover.run_id
    and task.step_slug = leftover.step_slug
    and task.task_index = leftover.task_index;

  perform pgflow.archive_messages(
    array(
      select row(clear_terminal_messages.queue_name, message.msg_id)::pgflow.message_ref
      from unnest(msg_ids) as message (msg_id)
    )
  );
end
$function$;

comment on function pgflow.clear_terminal_messages(text, bigint[]) is
'Internal: archives messages whose task, step or run has ended, and ends a task that was left active under them.';

create function pgflow.defer_messages(queue_name text, msg_ids bigint[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  messages pgflow.message_ref[];
  visible_at timestamptz[];
begin
  select
    array_agg(row(task.queue_name, task.message_id)::pgflow.message_ref),
    array_agg(
      greatest(
        pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until),
        -- Past its boundary the task is recovery's to take; until it does, the message must not spin.
        clock_timestamp() + interval '30 seconds'
      )
    )
  into messages, visible_at
  from unnest(msg_ids) as passed (msg_id)
  cross join lateral (
    select every.*
    from pgflow.step_tasks as every
    where every.queue_name = defer_messages.queue_name
      and every.message_id = passed.msg_id
    limit 1
  ) as task
  inner join pgflow.step_options as step
    on step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug;

  if messages is not null then
    perform pgflow.set_visibility(messages, visible_at);
  end if;
end
$function$;

comment on function pgflow.defer_messages(text, bigint[]) is
'Internal: hides messages of started tasks until the recovery boundary of each, at least 30 seconds from now. Uses no attempt.';

create function pgflow.extend_task(
  run_id uuid,
  step_slug text,
  task_index int,
  worker_id uuid,
  attempt int,
  seconds int
)
returns timestamptz
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  task pgflow.step_tasks;
  boundary timestamptz;
begin
  if coalesce(seconds, 0) < 1 then
    raise exception using
      errcode = 'PF019',
      message = format('A lease can''t be extended by %s seconds.', coalesce(seconds::text, 'null')),
      detail = format('Task %s of step "%s" in run %s.', extend_task.task_index, extend_task.step_slug, extend_task.run_id),
      hint = 'Pass the seconds from now that the work still needs, at least 1.';
  end if;

  -- Before the task and its message, as everywhere: a recompilation takes the flow, then the queue, then the tasks.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(run.flow_slug))
  from pgflow.runs as run
  where run.run_id = extend_task.run_id;

  update pgflow.step_tasks as held
  set lease_extended_until = greatest(
    held.lease_extended_until,
    clock_timestamp() + make_interval(secs => least(seconds, 31536000))
  )
  where held.run_id = extend_task.run_id
    and held.step_slug = extend_task.step_slug
    and held.task_index = extend_task.task_index
    and held.status = 'started'
    and held.last_worker_id = extend_task.worker_id
    and held.attempts_count = extend_task.attempt
  returning held.* into task;

  if not found then
    return null;
  end if;

  select pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until)
  into boundary
  from pgflow.step_options as step
  where step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug;

  perform pgflow.set_visibility(
    array[row(task.queue_name, task.message_id)::pgflow.message_ref],
    array[boundary]
  );

  return boundary;
end
$function$;

comment on function pgflow.extend_task(uuid, text, int, uuid, int, int) is
'Extends the lease of an attempt by seconds, counted from now, and returns the new recovery boundary; a lease never gets shorter. Null, and nothing changed, when the attempt is no longer the caller''s: it ended, was given up, or belongs to another worker. Raises PF019 for less than 1 second.';

create function pgflow.lock_subscription(worker pgflow.workers)
returns boolean
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Whoever recompiles, deletes or repairs a flow takes it first and the queue tables after it. A claim that waited
  -- here while it holds a queue table would wait for ever, so it gives way instead.
  if not pg_try_advisory_xact_lock_shared(pgflow.flow_key(worker.flow_slug)) then
    return false;
  end if;

  -- Waits for a fence, which the check then finds.
  perform from pgflow.workers as own where own.worker_id = worker.worker_id for share;
  perform pgflow.check_subscription(worker.worker_id);

  return true;
end
$function$;

comment on function pgflow.lock_subscription(pgflow.workers) is
'Internal: locks a worker''s flow and its row against changes and checks that it may claim. False when its flow is just being recompiled, deleted or repaired. Raises as check_subscription() does.';

create function pgflow.lock_tasks(queue_name text, msg_ids bigint[])
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Skipping what is locked can still wait: when one update of a row commits at the moment of the look, the next one is
  -- waited for. So the order is the one in which results lock tasks, and no two sessions ever wait for each other.
  return array(
    select locked.message_id
    from (
      select found.run_id, found.step_slug, found.task_index, step.step_index
      from unnest(lock_tasks.msg_ids) as passed (msg_id)
      cross join lateral (
        select task.flow_slug, task.run_id, task.step_slug, task.task_index
        from pgflow.step_tasks as task
        where task.queue_name = lock_tasks.queue_name
          and task.message_id = passed.msg_id
        limit 1
      ) as found
      cross join lateral (
        select every.step_index
        from pgflow.steps as every
        where every.flow_slug = found.flow_slug
          and every.step_slug = found.step_slug
        limit 1
      ) as step
      order by found.run_id, step.step_index, found.task_index
      limit cardinality(lock_tasks.msg_ids)
    ) as named
    cross join lateral (
      select task.message_id
      from pgflow.step_tasks as task
      where task.run_id = named.run_id
        and task.step_slug = named.step_slug
        and task.task_index = named.task_index
      limit 1
      for no key update skip locked
    ) as locked
  );
end
$function$;

comment on function pgflow.lock_tasks(text, bigint[]) is
'Internal: locks the tasks that these messages name and gives the ids of those it got. A task that another session holds is being claimed, finished or ended there: passed over.';

create function pgflow.poll_tasks(
  worker_id uuid,
  max_tasks int default 10,
  max_poll_seconds int default 5,
  poll_interval_ms int default 100
)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
  deadline timestamptz;
  head bigint[];
  candidates bigint[];
begin
  if coalesce(max_tasks, 0) not between 1 and 10000
    or coalesce(max_poll_seconds, -1) not between 0 and 60
    or coalesce(poll_interval_ms, 0) not between 1 and 60000 then
    raise exception using
      errcode = 'PF019',
      message = 'poll_tasks() got an argument out of range.',
      detail = format(
        'max_tasks is %s, of 1 to 10000; max_poll_seconds is %s, of 0 to 60; poll_interval_ms is %s, of 1 to 60000.',
        coalesce(max_tasks::text, 'null'), coalesce(max_poll_seconds::text, 'null'), coalesce(poll_interval_ms::text, 'null')
      ),
      hint = 'Pass 0 for max_poll_seconds to look once without waiting.';
  end if;

  select known.* into worker from pgflow.workers as known where known.worker_id = poll_tasks.worker_id;

  -- One that never registered has no subscription to look at.
  if worker.flow_slug is null then
    perform pgflow.check_subscription(poll_tasks.worker_id);
  end if;

  deadline := clock_timestamp() + make_interval(secs => max_poll_seconds);

  -- A stricter level would look at the same snapshot again and again.
  if current_setting('transaction_isolation') <> 'read committed' then
    deadline := clock_timestamp();
  end if;

  loop
    head := pgflow.visible_messages(worker.queue_name, max_tasks);

    if head <> '{}' then
      if pgflow.lock_subscription(worker) then
        return query
        select * from pgflow.claim_queued(worker, head, 1);

        -- Other sessions hold some of these tasks, or something else than queued work is among them.
        if not found then
          candidates := pgflow.candidate_messages(worker.queue_name, max_tasks);

          if candidates is null then
            perform pgflow.refuse_missing_queue(worker);
          end if;

          return query
          select * from pgflow.claim_queued(worker, candidates, 1);

          if not found and candidates <> '{}' then
            return query
            select * from pgflow.claim_batch(worker, candidates, 1);
          end if;
        end if;
      end if;

      return;
    end if;

    -- A worker that may not claim is told so, whether there is work or not.
    perform pgflow.check_subscription(poll_tasks.worker_id);

    if head is null then
      perform pgflow.refuse_missing_queue(worker);
    end if;

    exit when clock_timestamp() >= deadline;
    perform pg_sleep(
      least(poll_interval_ms / 1000.0, greatest(extract(epoch from deadline - clock_timestamp()), 0.001))
    );
  end loop;
end
$function$;

comment on function pgflow.poll_tasks(uuid, int, int, int) is
'Reads and claims up to max_tasks (1 to 10000) tasks of the subscription for which the worker registered, in one round trip and one transaction. Waits up to max_poll_seconds (0 to 60; 0 looks once) for work, looking every poll_interval_ms, and returns as soon as any message was classified; outcomes as in claim_tasks(). Only READ COMMITTED waits. A wait holds a snapshot, so prefer short polls. Raises PF010 (never registered), PF012 (function disabled), PF013 (unknown, stopped, older generation), PF007 (the queue is gone), PF019 (argument out of range).';

create function pgflow.refuse_batch(worker pgflow.workers, msg_ids bigint[], unsupported bigint[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  refusal text := format(
    'unsupported work on queue "%s": message ids %s',
    worker.queue_name,
    case
      when cardinality(unsupported) > 20
        then array_to_string(unsupported[1:20], ', ') || format(' and %s more', cardinality(unsupported) - 20)
      else array_to_string(unsupported, ', ')
    end
  );
  free bigint[];
begin
  -- The batch holds messages whose tasks are not locked here. One that another session has is claimed, finished or
  -- refused there, which says when it can be read again; waiting for it could close a circle.
  execute format(
    $sql$
      select array_agg(free.msg_id)
      from (
        select message.msg_id from pgmq.%I as message where message.msg_id = any($1) order by message.msg_id for update skip locked
      ) as free
    $sql$,
    'q_' || worker.queue_name
  )
  into free
  using msg_ids;

  if free is not null then
    perform pgflow.set_visibility(
      array(select row(worker.queue_name, message.msg_id)::pgflow.message_ref from unnest(free) as message (msg_id)),
      array_fill(clock_timestamp(), array[cardinality(free)])
    );
  end if;

  -- After the messages: the one exception to the order of locks, since only now it is known that it comes to this.
  update pgflow.worker_functions as function
  set
    enabled = false,
    disabled_at = clock_timestamp(),
    disabled_reason = refusal,
    updated_at = clock_timestamp()
  where function.function_name = worker.function_name;

  -- Sessions of one worker share the lock of its row, so none may wait here for another one to let go. The function's
  -- row above lets one after the other come here; where another session of the worker still claims, that row alone
  -- stops it.
  update pgflow.workers as own
  set stop_reason = refusal
  from (
    select free_row.worker_id
    from pgflow.workers as free_row
    where free_row.worker_id = worker.worker_id
    for no key update skip locked
  ) as mine
  where own.worker_id = mine.worker_id;

  -- A warning and no error: an error would undo all of the above.
  raise warning using
    errcode = 'PF011',
    message = format(
      'Worker function "%s" is disabled: unsupported work for step "%s" of flow "%s" on queue "%s", message ids %s.',
      worker.function_name,
      coalesce(worker.step_slug, '*'),
      worker.flow_slug,
      worker.queue_name,
      array_to_string(unsupported, ', ')
    ),
    detail = format(
      'None of the %s messages of the batch was claimed; all are visible again: %s.',
      cardinality(msg_ids), array_to_string(msg_ids, ', ')
    ),
    hint = format(
      'Look at them with select * from pgflow.classify_messages(%L, %L, %L, array[%s]); move them aside with pgflow.quarantine_message(), then run select pgflow.enable_worker_function(%L).',
      worker.queue_name, worker.flow_slug, worker.step_slug, array_to_string(unsupported[1:20], ', '), worker.function_name
    );
end
$function$;

comment on function pgflow.refuse_batch(pgflow.workers, bigint[], bigint[]) is
'Internal: the end of a batch with unsupported work. Makes every message of it visible again, disables the worker''s function, tells the worker to stop and sends one warning (PF011) with ids and never a body. Raises nothing, since that would undo it.';

create function pgflow.refuse_missing_queue(worker pgflow.workers)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- The snapshot of a stricter transaction may be older than a recompilation, which it then can't see.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using
      errcode = 'PF013',
      message = format('Worker %s can''t claim tasks: its queue "%s" is gone', worker.worker_id, worker.queue_name),
      detail = format(
        'Flow "%s" was recompiled or deleted after this transaction began, or somebody dropped the queue by hand.',
        worker.flow_slug
      ),
      hint = 'Begin a new transaction. If the worker is then told the same, stop it.';
  end if;

  raise exception using
    errcode = 'PF007',
    message = format('Queue "%s" of flow "%s" is gone from PGMQ.', worker.queue_name, worker.flow_slug),
    detail = format('PGMQ has no table "q_%s"; worker %s serves it.', worker.queue_name, worker.worker_id),
    hint = format(
      'Somebody dropped the queue by hand. Make it again: select * from pgflow.repair_queues(%L);', worker.flow_slug
    );
end
$function$;

comment on function pgflow.refuse_missing_queue(pgflow.workers) is
'Internal: raises PF007 for a worker whose queue was dropped by hand while its flow stands; PF013 in a transaction whose snapshot can''t tell.';

create function pgflow.start_tasks(flow_slug text, msg_ids bigint[], worker_id uuid)
returns setof pgflow.step_task_record
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_indexscan to off
set enable_indexonlyscan to off
set jit to off
as $function$
declare
  flow pgflow.flows;
  worker pgflow.workers;
  queue text := lower(start_tasks.flow_slug collate "C");
  locked bigint[];
begin
  -- Gives way to a recompilation, as every claim does.
  if not pg_try_advisory_xact_lock_shared(pgflow.flow_key(start_tasks.flow_slug)) then
    return;
  end if;

  select candidate.* into flow from pgflow.flows as candidate where candidate.flow_slug = start_tasks.flow_slug;

  if flow.queue_mode = 'step' then
    raise exception using
      errcode = 'PF010',
      message = format('start_tasks() can''t claim for flow "%s": every step of it has a queue of its own.', flow.flow_slug),
      detail = format('Its queue mode is "step"; %s messages were passed, none was changed.', coalesce(cardinality(msg_ids), 0)),
      hint = 'Register a worker for one step with register_worker() and use poll_tasks() or claim_tasks().';
  end if;

  select candidate.*
  into worker
  from pgflow.workers as candidate
  where candidate.worker_id = start_tasks.worker_id
  for share;

  if not found then
    raise exception using
      errcode = 'PF013',
      message = format('Worker %s is not known.', coalesce(start_tasks.worker_id::text, 'null')),
      detail = format('It wants to claim for flow "%s"; no message was changed.', start_tasks.flow_slug),
      hint = 'Its row in pgflow.workers was never written, or was removed. Start the worker again.';
  end if;

  -- Workers of pgflow 0.14 are not told why: they get nothing, and hear the rest by their heartbeat.
  if flow.flow_slug is null
    or worker.stop_reason is not null
    or exists (
      select
      from pgflow.worker_functions as function
      where function.function_name = worker.function_name
        and not function.enabled
    )
    or exists (
      select
      from pgflow.fences as fence
      where fence.flow_slug = start_tasks.flow_slug
        and fence.restored_at is null
    )
  then
    return;
  end if;

  worker.queue_name := queue;
  worker.flow_slug := flow.flow_slug;
  worker.step_slug := null;
  locked := pgflow.lock_tasks(queue, msg_ids);

  return query
  select
    attempt.flow_slug,
    attempt.run_id,
    attempt.step_slug,
    attempt.input,
    attempt.msg_id,
    attempt.task_index,
    attempt.flow_input
  from pgflow.claim_queued(
    worker,
    array(
      select message.msg_id
      from pgflow.classify_messages(queue, start_tasks.flow_slug, null, locked) as message
      where message.class = 'claimable'
      order by message.msg_id
    ),
    0
  ) as attempt
  where attempt.outcome = 'claimed';
end
$function$;

comment on function pgflow.start_tasks(text, bigint[], uuid) is
'Claims the tasks of messages that the caller has read from a flow-mode flow''s queue, and returns them with their input. Commit the read first: one transaction that reads and claims holds messages while it waits for tasks, and can deadlock with a fence. Ids that are not queued tasks of a started step are ignored; a worker that was told to stop, of a disabled function or of a fenced flow gets no rows. Raises PF010 for a step-mode flow, PF013 for a worker without a row. As in pgflow 0.14.';

create function pgflow.visible_messages(queue_name text, max_messages int)
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
as $function$
declare
  head bigint[];
begin
  execute format(
    'select array(select msg_id from pgmq.%I where vt <= $1 order by vt, msg_id limit $2)', 'q_' || visible_messages.queue_name
  )
  into head
  using clock_timestamp(), max_messages;

  return head;
exception
  -- Somebody dropped the queue under us, or put something else in its place. Whether that was a recompilation, the
  -- worker's row tells.
  when undefined_table or undefined_column or undefined_function or wrong_object_type then
    return null;
end
$function$;

comment on function pgflow.visible_messages(text, int) is
'Internal: ids of up to max_messages messages of a queue that can be read, in the order in which they became visible. Null when the queue is gone.';

create function pgflow.worker_standing(worker_id uuid)
returns table (errcode text, reason text)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
set jit to off
as $function$
declare
  worker record;
begin
  -- One look and then plain tests: every claim comes here, and nearly every one finds nothing to object to.
  select
    known.*,
    flow.flow_slug as known_flow,
    flow.generation as known_generation,
    function.enabled as is_enabled,
    function.disabled_reason,
    fence.flow_slug as fenced_flow,
    fence.reason as fence_reason
  into worker
  from pgflow.workers as known
  left join pgflow.flows as flow on flow.flow_slug = known.flow_slug
  left join pgflow.worker_functions as function on function.function_name = known.function_name
  -- Workers of pgflow 0.14 know nothing but the queue.
  left join pgflow.queues as owner
    on known.flow_slug is null
    and owner.queue_name = lower(known.queue_name collate "C")
  -- Every worker of the flow is behind its fence, one of a function that the fence has not met, too.
  left join lateral (
    select open.flow_slug, open.reason
    from pgflow.fences as open
    where open.flow_slug = coalesce(known.flow_slug, owner.flow_slug)
      and open.restored_at is null
    limit 1
  ) as fence on true
  where known.worker_id = worker_standing.worker_id;

  -- What can't be mended comes first; a disabled function before the order to stop, since it says what to repair.
  if worker.worker_id is null then
    errcode := 'PF013';
    reason := format('worker %s is not known', coalesce(worker_standing.worker_id::text, 'null'));
  elsif worker.stopped_at is not null then
    errcode := 'PF013';
    reason := 'it was stopped at ' || worker.stopped_at;
  elsif worker.flow_slug is not null and worker.known_flow is null then
    errcode := 'PF013';
    reason := format('flow "%s" is gone', worker.flow_slug);
  elsif worker.flow_slug is not null and worker.generation is distinct from worker.known_generation then
    errcode := 'PF013';
    reason := format(
      'flow "%s" was recompiled: the worker is of generation %s, the flow of generation %s',
      worker.flow_slug, worker.generation, worker.known_generation
    );
  elsif worker.fenced_flow is not null then
    errcode := 'PF012';
    reason := format('flow "%s" is fenced: %s', worker.fenced_flow, worker.fence_reason);
  elsif not worker.is_enabled then
    errcode := 'PF012';
    reason := format(
      'function "%s" is disabled: %s', worker.function_name, coalesce(worker.disabled_reason, 'no reason was recorded')
    );
  elsif worker.stop_reason is not null then
    errcode := 'PF013';
    reason := 'it was told to stop: ' || worker.stop_reason;
  elsif worker.deprecated_at is not null then
    errcode := 'PF013';
    reason := 'it was deprecated at ' || worker.deprecated_at;
  elsif worker.flow_slug is null then
    errcode := 'PF010';
    reason := 'it never registered a subscription';
  else
    return;
  end if;

  return next;
end
$function$;

comment on function pgflow.worker_standing(uuid) is
'Whether a worker may go on: no row when it may, else the SQLSTATE that a claim of it raises (PF013, PF012, PF010) and the reason as the rest of a sentence about the worker. Claims, heartbeats and coverage all ask this function.';

create function pgflow.is_disabled_by_fence(function pgflow.worker_functions)
returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select exists (
    select
    from pgflow.fences as fence
    where fence.function_name = (function).function_name
      and fence.fenced_at = (function).disabled_at
  );
$function$;

comment on function pgflow.is_disabled_by_fence(pgflow.worker_functions) is
'Internal: whether it was a fence that disabled a function, and nobody did so again since then.';

create function pgflow.check_enabled(function pgflow.worker_functions, flow_slug text, worker_id uuid)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  fence pgflow.fences;
begin
  select open.*
  into fence
  from pgflow.fences as open
  where open.flow_slug = check_enabled.flow_slug
    and open.restored_at is null
  order by open.fenced_at
  limit 1;

  if function.enabled and fence.flow_slug is null then
    return;
  end if;

  raise exception using
    errcode = 'PF012',
    message = case
      when fence.flow_slug is not null then format('Flow "%s" is fenced: %s', fence.flow_slug, fence.reason)
      else format(
        'Worker function "%s" is disabled: %s',
        function.function_name,
        coalesce(function.disabled_reason, 'no reason was recorded')
      )
    end,
    detail = format(
      '%s. Worker %s of function "%s" was not registered.',
      case
        when fence.flow_slug is not null then 'Fenced at ' || fence.fenced_at
        else 'Disabled at ' || coalesce(function.disabled_at::text, 'an unknown time')
      end,
      check_enabled.worker_id,
      function.function_name
    ),
    hint = format(
      'When the cause is removed: %s;',
      pgflow.way_to_enable(function.function_name, check_enabled.flow_slug)
    );
end
$function$;

comment on function pgflow.check_enabled(pgflow.worker_functions, text, uuid) is
'Internal: raises PF012 unless workers of a function may register for a flow: the flow is fenced, or the function is disabled.';

create function pgflow.check_fenced_flow(flow_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if not exists (select from pgflow.flows as flow where flow.flow_slug = check_fenced_flow.flow_slug)
    and not exists (select from pgflow.fences as fence where fence.flow_slug = check_fenced_flow.flow_slug) then
    perform pgflow.refuse_unknown_flow(check_fenced_flow.flow_slug);
  end if;
end
$function$;

comment on function pgflow.check_fenced_flow(text) is
'Internal: raises PF018 for a flow that is neither there nor was ever fenced. A flow that was deleted behind its fence is fine.';

create function pgflow.check_registration(worker_id uuid, function_name text, flow_slug text, start_mode text)
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
declare
  missing text := case
    when worker_id is null then 'worker_id'
    when coalesce(btrim(function_name), '') = '' then 'function_name'
    when flow_slug is null then 'flow_slug'
  end;
begin
  if missing is not null then
    raise exception using
      errcode = 'PF019',
      message = format('A worker can''t be registered without a %s.', missing),
      detail = format(
        'worker_id is %s, function_name %s, flow_slug %s.',
        coalesce(worker_id::text, 'null'),
        coalesce(quote_literal(function_name), 'null'),
        coalesce(quote_literal(flow_slug), 'null')
      ),
      hint = 'Call pgflow.register_worker(worker_id => gen_random_uuid(), function_name => ..., flow_slug => ...).';
  end if;

  if start_mode not in ('http', 'process') then
    raise exception using
      errcode = 'PF019',
      message = format('Start mode "%s" of worker function "%s" is not known.', start_mode, function_name),
      detail = 'A start mode is http (ensure_workers() starts the workers) or process (they start by themselves).',
      hint = 'Pass one of the two, or null to keep what is stored.';
  end if;
end
$function$;

comment on function pgflow.check_registration(uuid, text, text, text) is
'Internal: raises PF019 for an argument of register_worker() that is missing or not one of the known values.';

create function pgflow.check_routes(flow_slug text, step_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  faults text;
begin
  select string_agg(fault.fault, ' ')
  into faults
  from pgflow.route_faults(check_routes.flow_slug, check_routes.step_slug) as fault;

  if faults is not null then
    raise exception using
      errcode = 'PF007',
      message = format('The routes of flow "%s" are not what was compiled.', check_routes.flow_slug),
      detail = faults,
      hint = 'A worker would poll the wrong queue. Find out who changed the queue or the route; '
        'pgflow.check_integrity() lists every fault.';
  end if;
end
$function$;

comment on function pgflow.check_routes(text, text) is
'Internal: raises PF007, listing persisted and derived routes, when a witness of a flow''s routes (of one step''s, when given) disagrees.';

create function pgflow.check_step_selection(flow_slug text, step_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  mode text;
  known_steps text[];
begin
  select flow.queue_mode into mode from pgflow.flows as flow where flow.flow_slug = check_step_selection.flow_slug;

  known_steps := array(
    select step.step_slug
    from pgflow.steps as step
    where step.flow_slug = check_step_selection.flow_slug
    order by step.step_index
  );

  if (mode = 'step' and check_step_selection.step_slug = any(known_steps))
    or (mode = 'flow' and check_step_selection.step_slug is null)
  then
    return;
  end if;

  raise exception using
    errcode = 'PF014',
    message = case
      when mode = 'flow'
        then format('Flow "%s" is in flow mode: its workers select no step.', check_step_selection.flow_slug)
      when check_step_selection.step_slug is null
        then format('Flow "%s" has a queue for every step: a worker must select one.', check_step_selection.flow_slug)
      else format('Flow "%s" has no step "%s".', check_step_selection.flow_slug, check_step_selection.step_slug)
    end,
    detail = format('Its steps: %s.', coalesce(nullif(array_to_string(known_steps, ', '), ''), 'none')),
    hint = case
      when mode = 'flow' then 'Leave step_slug out: one worker serves every step of the flow.'
      else 'Pass one of them as step_slug; slugs are case-sensitive.'
    end;
end
$function$;

comment on function pgflow.check_step_selection(text, text) is
'Internal: raises PF014, listing the valid steps, unless the step is one of the step-mode flow''s, or is null for a flow-mode flow.';

create function pgflow.cleanup_ensure_workers_logs(retention_hours int default 24)
returns table (cron_deleted bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  if coalesce(retention_hours, -1) < 0 then
    raise exception using
      errcode = 'PF019',
      message = format('The log can''t be kept for %s hours.', coalesce(retention_hours::text, 'null')),
      detail = 'retention_hours is a whole number from 0.',
      hint = 'Pass how many hours of the log to keep, for example 24.';
  end if;

  if to_regclass('cron.job_run_details') is null or not pgflow.is_trusted_schema('cron') then
    raise exception using
      errcode = 'PF019',
      message = 'There is no log to clean up: pg_cron is not installed in this database.',
      detail = 'The log is the table cron.job_run_details, in a schema whose owner has the rights of the owner of pgflow.',
      hint = 'Without pg_cron nothing writes such a log; leave the call out.';
  end if;

  -- Capped at a century: the server's dates come to an end.
  execute 'delete from cron.job_run_details where end_time < $1'
  using clock_timestamp() - make_interval(hours => least(retention_hours, 876600));

  get diagnostics cron_deleted = row_count;
  return next;
end
$function$;

comment on function pgflow.cleanup_ensure_workers_logs(int) is
'Deletes the entries of pg_cron''s log that ended more than retention_hours ago, of all jobs, and returns how many. Jobs that run every second fill that log fast. Raises PF019 without pg_cron or for a negative retention. As in pgflow 0.14.';

create function pgflow.disable_worker_function(function_name text, reason text)
returns pgflow.worker_functions
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  disabled pgflow.worker_functions;
begin
  if coalesce(btrim(reason), '') = '' then
    raise exception using
      errcode = 'PF019',
      message = format('Worker function "%s" can''t be disabled without a reason.', function_name),
      detail = 'The reason is what its workers and operators get to read.',
      hint = 'Pass a sentence as reason.';
  end if;

  -- A function that is disabled already gets the new time and reason: a fence must be able to tell that somebody
  -- else wants it disabled too.
  update pgflow.worker_functions as function
  set
    enabled = false,
    disabled_at = clock_timestamp(),
    disabled_reason = reason,
    updated_at = clock_timestamp()
  where function.function_name = disable_worker_function.function_name
  returning function.* into disabled;

  if not found then
    perform pgflow.refuse_unknown_function(disable_worker_function.function_name);
  end if;

  return disabled;
end
$function$;

comment on function pgflow.disable_worker_function(text, text) is
'Keeps the workers of a function from registering and claiming, and ensure_workers() from starting it, until enable_worker_function() is called; workers learn it by their next heartbeat. Returns the function''s row. Raises PF018 (unknown function), PF019 (no reason).';

create function pgflow.enable_worker_function(function_name text)
returns pgflow.worker_functions
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  enabled pgflow.worker_functions;
  fence pgflow.fences;
begin
  update pgflow.worker_functions as function
  set
    enabled = true,
    disabled_at = null,
    disabled_reason = null,
    updated_at = clock_timestamp()
  where function.function_name = enable_worker_function.function_name
  returning function.* into enabled;

  if not found then
    perform pgflow.refuse_unknown_function(enable_worker_function.function_name);
  end if;

  select open.*
  into fence
  from pgflow.fences as open
  where open.function_name = enable_worker_function.function_name
    and open.restored_at is null
  order by open.fenced_at
  limit 1;

  if found then
    raise exception using
      errcode = 'PF012',
      message = format('Worker function "%s" is fenced with flow "%s".', fence.function_name, fence.flow_slug),
      detail = format('Since %s: %s', fence.fenced_at, fence.reason),
      hint = format(
        'Lift the fence: select * from pgflow.unfence_flow(%L). It restores what was enabled before.', fence.flow_slug
      );
  end if;

  return enabled;
end
$function$;

comment on function pgflow.enable_worker_function(text) is
'Lets the workers of a function register and claim again. Workers that were told to stop stay stopped: start new ones. Returns the function''s row. Raises PF018 (unknown function), PF012 (it is fenced with a flow).';

create function pgflow.ensure_workers()
returns table (function_name text, invoked boolean, request_id bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  due text[];
  request record;
begin
  -- A function that another call is starting right now is not started twice.
  select array_agg(waiting.function_name order by waiting.function_name collate "C")
  into due
  from (
    select function.function_name
    from pgflow.worker_functions as function
    where function.enabled
      and function.start_mode = 'http'
      and (
        pgflow.is_local()
        or (
          coalesce(function.last_invoked_at < clock_timestamp() - function.debounce, true)
          and not exists (
            select
            from pgflow.workers as worker
            where worker.function_name = function.function_name
              and pgflow.worker_is_live(worker, function.debounce)
          )
        )
      )
    order by function.function_name
    for no key update skip locked
  ) as waiting;

  if due is null then
    return;
  end if;

  select start_request.base_url, start_request.headers into request from pgflow.start_request();

  if not found then
    return query
    select due_function.name, false, null::bigint
    from unnest(due) as due_function (name);
    return;
  end if;

  return query execute
    'select due.name, true, net.http_post(url => $2 || due.name, headers => $3, body => ''{}''::jsonb) '
    'from unnest($1) as due (name)'
  using due, request.base_url, request.headers;

  update pgflow.worker_functions as function
  set
    last_invoked_at = clock_timestamp(),
    updated_at = clock_timestamp()
  where function.function_name = any(due);
end
$function$;

comment on function pgflow.ensure_workers() is
'Starts workers: calls every enabled function of start_mode http that has no live worker and was not called within its debounce (in local mode every one), once, through pg_net. One row for each that was due; invoked is false where it could not be called, because pg_net or a vault secret is missing: then nothing is recorded and process workers go on as ever. As in pgflow 0.14.';

create function pgflow.fence_flow(flow_slug text, reason text)
returns table (function_name text, was_enabled boolean)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  names text[];
  worker_ids uuid[];
  now_fenced timestamptz;
begin
  if coalesce(btrim(reason), '') = '' then
    raise exception using
      errcode = 'PF019',
      message = format('Flow "%s" can''t be fenced without a reason.', fence_flow.flow_slug),
      detail = 'The reason is what its workers and operators get to read.',
      hint = 'Pass a sentence as reason.';
  end if;

  -- Keeps registrations and other fences of the flow away. Work on it goes on.
  perform from pgflow.flows as flow where flow.flow_slug = fence_flow.flow_slug for no key update;

  if not found then
    perform pgflow.refuse_unknown_flow(fence_flow.flow_slug);
  end if;

  names := array(
    select worker.function_name from pgflow.flow_workers(fence_flow.flow_slug) as worker
    union
    select fence.function_name
    from pgflow.fences as fence
    where fence.flow_slug = fence_flow.flow_slug
      and fence.restored_at is null
  );

  -- A claim shares the row of its worker: this waits for those in progress, and those that come later wait, and then
  -- find the fence. Workers before functions, as a registration and a fatal claim have them, since a function may serve
  -- other flows, too.
  worker_ids := array(
    select worker.worker_id
    from pgflow.workers as worker
    where worker.function_name = any(names)
    order by worker.worker_id
    for no key update
  );

  -- A worker of pgflow 0.14 can be there without its function.
  insert into pgflow.worker_functions as known (function_name, start_mode, created_at, updated_at)
  select unknown.name, 'process', clock_timestamp(), clock_timestamp()
  from unnest(names) as unknown (name)
  order by unknown.name collate "C"
  on conflict do nothing;

  perform
  from pgflow.worker_functions as known
  where known.function_name = any(names)
  order by known.function_name collate "C"
  for no key update;

  now_fenced := clock_timestamp();

  -- What another fence disabled was enabled before that one: so the last fence to go restores what was there at first.
  insert into pgflow.fences (flow_slug, function_name, was_enabled, fenced_at, reason)
  select
    fence_flow.flow_slug,
    known.function_name,
    coalesce(earlier.was_enabled, known.enabled),
    now_fenced,
    fence_flow.reason
  from pgflow.worker_functions as known
  left join lateral (
    select fence.was_enabled
    from pgflow.fences as fence
    where fence.function_name = known.function_name
      and fence.restored_at is null
      and pgflow.is_disabled_by_fence(known)
    order by fence.fenced_at
    limit 1
  ) as earlier on true
  where known.function_name = any(names)
    and not exists (
      select
      from pgflow.fences as open
      where open.flow_slug = fence_flow.flow_slug
        and open.function_name = known.function_name
        and open.restored_at is null
    );

  update pgflow.worker_functions as known
  set
    enabled = false,
    disabled_at = fence.fenced_at,
    disabled_reason = format('fenced with flow "%s": %s', fence.flow_slug, fence.reason),
    updated_at = clock_timestamp()
  from pgflow.fences as fence
  where fence.flow_slug = fence_flow.flow_slug
    and fence.restored_at is null
    and known.function_name = fence.function_name
    and known.enabled;

  -- Only those whose rows are ours: one that registered meanwhile, for another flow, may just meet foreign work and wait
  -- for its function's row. It finds its function disabled.
  update pgflow.workers as worker
  set deprecated_at = clock_timestamp()
  where worker.worker_id = any(worker_ids)
    and worker.deprecated_at is null
    and worker.stopped_at is null;

  return query
  select fence.function_name, fence.was_enabled
  from pgflow.fences as fence
  where fence.flow_slug = fence_flow.flow_slug
    and fence.restored_at is null
  order by fence.function_name collate "C";
end
$function$;

comment on function pgflow.fence_flow(text, text) is
'Takes every worker function of a flow out of service: those of any of its workers, live or not, in one transaction. Records whether each was enabled, disables it, so that ensure_workers() leaves it alone, and deprecates its workers; until unfence_flow() nobody can register for the flow or claim from it. Workers learn it by their next heartbeat and finish what they have; fence_status() tells when they have. Returns the functions with what will be restored. Fencing again keeps the first record, and takes in functions that came meanwhile. reason is for people. Waits for claims in progress. Raises PF018 (unknown flow), PF019 (no reason).';

create function pgflow.fence_status(flow_slug text)
returns table (
  function_name text,
  was_enabled boolean,
  fenced_at timestamptz,
  reason text,
  live_workers bigint,
  last_heartbeat_at timestamptz,
  started_tasks bigint,
  is_drained boolean
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.check_fenced_flow(fence_status.flow_slug);

  return query
  select
    fence.function_name,
    fence.was_enabled,
    fence.fenced_at,
    fence.reason,
    pool.live_workers,
    pool.last_heartbeat_at,
    work.started_tasks,
    pool.live_workers = 0 and work.started_tasks = 0
  from pgflow.fences as fence
  cross join lateral (
    select
      -- Deprecated by the fence, and yet at work as long as they are heard of.
      count(*) filter (
        where worker.stopped_at is null
          and worker.last_heartbeat_at > clock_timestamp() - interval '30 seconds'
      ) as live_workers,
      max(worker.last_heartbeat_at) as last_heartbeat_at
    from pgflow.workers as worker
    where worker.function_name = fence.function_name
  ) as pool
  cross join lateral (
    select count(*) as started_tasks
    from pgflow.workers as worker
    inner join pgflow.step_tasks as task
      on task.last_worker_id = worker.worker_id
      and task.status = 'started'
    where worker.function_name = fence.function_name
  ) as work
  where fence.flow_slug = fence_status.flow_slug
    and fence.restored_at is null
  order by fence.function_name collate "C";
end
$function$;

comment on function pgflow.fence_status(text) is
'How far the functions behind the fence of a flow have drained, a row each; none when there is no fence. live_workers counts those heard of within 30 seconds that have not stopped, started_tasks what workers of the function have in hand, of any flow; is_drained: neither. What a lost worker had in hand counts until requeue_stalled_tasks() takes it back. Raises PF018 for a flow that is not known and was never fenced.';

create function pgflow.flow_workers(flow_slug text)
returns setof pgflow.workers
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select worker.*
  from pgflow.workers as worker
  where worker.flow_slug = flow_workers.flow_slug
    or (
      -- Workers of pgflow 0.14 know nothing but the queue.
      worker.flow_slug is null
      and lower(worker.queue_name collate "C") in (
        select owner.queue_name
        from pgflow.queues as owner
        where owner.flow_slug = flow_workers.flow_slug
      )
    );
$function$;

comment on function pgflow.flow_workers(text) is
'Internal: every worker that ever registered for a flow and is still listed, live or not. Ask while the flow owns its queues.';

create function pgflow.heartbeat(worker_id uuid)
returns table (should_stop boolean, reason text)
language sql
begin atomic
  update pgflow.workers as worker
  set last_heartbeat_at = clock_timestamp()
  where worker.worker_id = heartbeat.worker_id;

  -- Workers of pgflow 0.14 have no subscription and may go on all the same.
  select
    standing.errcode is not null as should_stop,
    standing.reason
  from (values (heartbeat.worker_id)) as asked (worker_id)
  left join lateral (
    select
      standing.errcode,
      standing.reason
    from pgflow.worker_standing(asked.worker_id) as standing
    where standing.errcode <> 'PF010'
  ) as standing on true;
end;

comment on function pgflow.heartbeat(uuid) is
'Records that a worker is alive and tells it whether to stop, and why: it is unknown, stopped, deprecated, told to stop or of an older generation, its function is disabled, or its flow is gone. One row always. Live means heard of within 30 seconds, so call it every 10.';

create function pgflow.mark_worker_stopped(worker_id uuid)
returns void
language sql
begin atomic
  update pgflow.workers as worker
  set stopped_at = clock_timestamp()
  where worker.worker_id = mark_worker_stopped.worker_id
    and worker.stopped_at is null;
end;

comment on function pgflow.mark_worker_stopped(uuid) is
'Records that a worker has stopped; it can neither claim nor register again. An unknown worker, or one that has stopped before, changes nothing. As in pgflow 0.14.';

create view pgflow.queue_workers as
-- Judged once a worker, whatever this is joined with: a flow has hundreds of queues, and a fleet hundreds of workers.
with judged as materialized (
  select
    worker.worker_id,
    worker.function_name,
    worker.queue_name,
    worker.flow_slug,
    worker.step_slug,
    worker.last_heartbeat_at,
    pgflow.worker_is_live(worker)
    and not exists (
      select
      from pgflow.worker_standing(worker.worker_id) as standing
      where standing.errcode <> 'PF010'
    ) as is_serving
  from pgflow.workers as worker
)

select
  queue.queue_name,
  queue.flow_slug,
  queue.step_slug,
  worker.worker_id,
  worker.function_name,
  worker.last_heartbeat_at,
  worker.is_serving
from pgflow.queues as queue
-- Workers of pgflow 0.14 write the slug as it was written; they serve whole queues only.
inner join judged as worker
  on queue.queue_name = lower(worker.queue_name collate "C")
  and queue.flow_slug = coalesce(worker.flow_slug, queue.flow_slug)
  and queue.step_slug is not distinct from worker.step_slug;

comment on view pgflow.queue_workers is
'Which workers are there for which owned queue: registered ones by their exact subscription, workers of pgflow 0.14 by the name of a flow-mode flow''s queue.';
comment on column pgflow.queue_workers.step_slug is 'Null: every step of a flow-mode flow.';
comment on column pgflow.queue_workers.is_serving is 'The worker is live, and nothing keeps it from claiming.';

create function pgflow.refuse_known_worker(worker_id uuid)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
begin
  select known.* into worker from pgflow.workers as known where known.worker_id = refuse_known_worker.worker_id;

  raise exception using
    errcode = 'PF010',
    message = format('Worker %s is known already and can''t be registered like this.', refuse_known_worker.worker_id),
    detail = format(
      'It registered as function "%s" for queue "%s", flow %s, step %s%s.',
      worker.function_name,
      worker.queue_name,
      coalesce(quote_ident(worker.flow_slug), 'none'),
      coalesce(quote_ident(worker.step_slug), 'none'),
      coalesce(
        (select '; ' || standing.reason from pgflow.worker_standing(refuse_known_worker.worker_id) as standing),
        ''
      )
    ),
    hint = 'Every start of a worker and every subscription needs an id of its own: gen_random_uuid().';
end
$function$;

comment on function pgflow.refuse_known_worker(uuid) is
'Internal: raises PF010 for a worker id that registered with another subscription, or that was stopped.';

create function pgflow.refuse_unknown_function(function_name text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF018',
    message = format('Worker function %s is not known.', coalesce('"' || function_name || '"', 'null')),
    detail = format(
      'Known functions: %s.',
      coalesce(
        (
          select string_agg(known.function_name, ', ' order by known.function_name collate "C")
          from pgflow.worker_functions as known
        ),
        'none'
      )
    ),
    hint = 'A function becomes known when a worker of it registers, or by pgflow.track_worker_function().';
end
$function$;

comment on function pgflow.refuse_unknown_function(text) is
'Internal: raises PF018 for the name of a worker function that is not known, with those that are.';

create function pgflow.register_worker(
  worker_id uuid,
  function_name text,
  flow_slug text,
  step_slug text default null,
  start_mode text default null
)
returns pgflow.workers
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow pgflow.flows;
  function pgflow.worker_functions;
  worker pgflow.workers;
begin
  perform pgflow.check_registration(
    register_worker.worker_id,
    register_worker.function_name,
    register_worker.flow_slug,
    register_worker.start_mode
  );

  -- Keeps queue mode, routes and generation as they are until the row is there; the row lock, a fence away.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(register_worker.flow_slug));

  select candidate.*
  into flow
  from pgflow.flows as candidate
  where candidate.flow_slug = register_worker.flow_slug
  for share;

  if not found then
    perform pgflow.refuse_unknown_flow(register_worker.flow_slug);
  end if;

  perform pgflow.check_step_selection(register_worker.flow_slug, register_worker.step_slug);
  perform pgflow.check_routes(register_worker.flow_slug, register_worker.step_slug);

  -- A known worker's own row comes before its function's: that is the order in which a fatal claim has them, too.
  perform
  from pgflow.workers as known
  where known.worker_id = register_worker.worker_id
  for no key update;

  insert into pgflow.worker_functions as known (function_name, start_mode, created_at, updated_at)
  values (
    register_worker.function_name,
    coalesce(register_worker.start_mode, 'process'),
    clock_timestamp(),
    clock_timestamp()
  )
  on conflict on constraint worker_functions_pkey do update set
    start_mode = coalesce(register_worker.start_mode, known.start_mode),
    updated_at = clock_timestamp()
  returning known.* into function;

  perform pgflow.check_enabled(function, register_worker.flow_slug, register_worker.worker_id);

  insert into pgflow.workers as known (
    worker_id, queue_name, function_name, flow_slug, step_slug, generation, started_at, last_heartbeat_at
  )
  select
    register_worker.worker_id,
    pgflow.subscription_queue(register_worker.flow_slug, register_worker.step_slug),
    register_worker.function_name,
    register_worker.flow_slug,
    register_worker.step_slug,
    flow.generation,
    clock_timestamp(),
    clock_timestamp()
  on conflict on constraint workers_pkey do update set
    last_heartbeat_at = clock_timestamp()
  where known.queue_name = excluded.queue_name
    and known.function_name = excluded.function_name
    and known.flow_slug = excluded.flow_slug
    and known.step_slug is not distinct from excluded.step_slug
    and known.generation = excluded.generation
    and known.stopped_at is null
    and known.deprecated_at is null
    and known.stop_reason is null
  returning known.* into worker;

  if not found then
    perform pgflow.refuse_known_worker(register_worker.worker_id);
  end if;

  return worker;
end
$function$;

comment on function pgflow.register_worker(uuid, text, text, text, text) is
'Registers a worker of a function for a flow-mode flow (step_slug null) or for one step of a step-mode flow, and returns its row. Makes the function''s row, enabled, where there is none. start_mode is http (ensure_workers() starts it), process, or null: what is stored, else process. The same worker may register again for the same subscription while nothing told it to stop. A refusal leaves no row: PF018 (unknown flow), PF014 (step missing, unknown or not allowed), PF007 (route or queue is not what was compiled), PF012 (function disabled, or flow fenced), PF010 (id known with another subscription, or stopped), PF019 (bad argument).';

create function pgflow.schedule_cron_job(job_name text, cron_schedule text, command text)
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  job_id bigint;
begin
  if to_regclass('cron.job') is null or not pgflow.is_trusted_schema('cron') then
    raise exception using
      errcode = 'PF019',
      message = format('Job "%s" can''t be scheduled: pg_cron is not installed in this database.', job_name),
      detail = format(
        'Wanted: %s, on the schedule "%s". Schema cron must belong to a role with the rights of the owner of pgflow.',
        command,
        coalesce(cron_schedule, 'null')
      ),
      hint = format(
        'Run create extension pg_cron, or let a scheduler of your own run this statement as often: %s', command
      );
  end if;

  execute 'select cron.unschedule(job.jobid) from cron.job as job where job.jobname = $1' using job_name;
  execute 'select cron.schedule($1, $2, $3)' into job_id using job_name, coalesce(cron_schedule, ''), command;

  return job_id;
exception
  when invalid_parameter_value then
    raise exception using
      errcode = 'PF019',
      message = format(
        'pg_cron does not take the schedule "%s" of job "%s".', coalesce(cron_schedule, 'null'), job_name
      ),
      detail = format('It said: %s. Jobs of that name are as they were.', sqlerrm),
      hint = 'Pass seconds (''15 seconds''; pg_cron 1.5 and newer) or a cron expression (''* * * * *'': every minute).';
end
$function$;

comment on function pgflow.schedule_cron_job(text, text, text) is
'Internal: makes a pg_cron job, in place of any of that name that the caller can see, and returns its id. Raises PF019 without pg_cron, saying what to schedule instead, and for a schedule that pg_cron doesn''t take.';

create function pgflow.setup_ensure_workers_cron(cron_interval text default '1 second')
returns text
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.schedule_cron_job(
    'pgflow_ensure_workers', cron_interval, 'select pgflow.ensure_workers();'
  );
  perform pgflow.schedule_cron_job(
    'pgflow_cleanup_logs', '0 * * * *', 'select pgflow.cleanup_ensure_workers_logs();'
  );

  return format(
    'Scheduled pgflow_ensure_workers (%s) and pgflow_cleanup_logs (hourly).', cron_interval
  );
end
$function$;

comment on function pgflow.setup_ensure_workers_cron(text) is
'Schedules ensure_workers() through pg_cron, with an hourly clean-up of pg_cron''s log, in place of earlier jobs of these names. cron_interval is what pg_cron takes: seconds (pg_cron 1.5 and newer) or a cron expression. Returns what was scheduled. Raises PF019 without pg_cron, or when it doesn''t take the interval. As in pgflow 0.14.';

create function pgflow.start_request()
returns table (base_url text, headers jsonb)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  secrets jsonb;
  project_id text;
  auth_key text;
begin
  if not exists (
    select
    from pg_proc as procedure
    inner join pg_namespace as namespace on namespace.oid = procedure.pronamespace
    where namespace.nspname = 'net'
      and procedure.proname = 'http_post'
  )
    or not pgflow.is_trusted_schema('net')
  then
    return;
  end if;

  if pgflow.is_local() then
    return query select 'http://kong:8000/functions/v1/', '{}'::jsonb;
    return;
  end if;

  if to_regclass('vault.decrypted_secrets') is null or not pgflow.is_trusted_schema('vault') then
    return;
  end if;

  execute
    'select jsonb_object_agg(secret.name, nullif(secret.decrypted_secret, '''')) '
    'from vault.decrypted_secrets as secret where secret.name = any($1)'
  into secrets
  using array['supabase_project_id', 'pgflow_auth_secret', 'supabase_service_role_key'];

  project_id := secrets ->> 'supabase_project_id';
  auth_key := coalesce(secrets ->> 'pgflow_auth_secret', secrets ->> 'supabase_service_role_key');

  if project_id is null or auth_key is null then
    return;
  end if;

  return query
  select
    format('https://%s.supabase.co/functions/v1/', project_id),
    jsonb_build_object('Content-Type', 'application/json', 'Authorization', 'Bearer ' || auth_key);
end
$function$;

comment on function pgflow.start_request() is
'Internal: where and with which headers worker functions are called over HTTP. No row when they can''t be: pg_net is not installed, a secret is missing from the vault, or the schema of either is not trusted.';

create function pgflow.subscription_queue(flow_slug text, step_slug text)
returns text
language sql
stable
begin atomic
  select coalesce(
    (
      select step.queue_name
      from pgflow.steps as step
      where step.flow_slug = subscription_queue.flow_slug
        and step.step_slug = subscription_queue.step_slug
    ),
    lower(subscription_queue.flow_slug collate "C")
  );
end;

comment on function pgflow.subscription_queue(text, text) is
'Internal: the queue of a subscription: the private one of a step, or, for a null step, the one of a flow-mode flow. The caller has checked both and their routes.';

create function pgflow.track_worker_function(function_name text)
returns void
language sql
begin atomic
  -- A function that tells of itself has just been started: ensure_workers() leaves it alone for its debounce.
  insert into pgflow.worker_functions as function (function_name, last_invoked_at, created_at, updated_at)
  values (track_worker_function.function_name, clock_timestamp(), clock_timestamp(), clock_timestamp())
  on conflict (function_name) do update set
    last_invoked_at = excluded.last_invoked_at,
    updated_at = excluded.updated_at;
end;

comment on function pgflow.track_worker_function(text) is
'Tells pgflow of a worker function that ensure_workers() shall keep running. A function that is known already keeps its start_mode and whether it is enabled. As in pgflow 0.14.';

create function pgflow.unfence_flow(flow_slug text)
returns table (function_name text, enabled boolean, reason text)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.check_fenced_flow(unfence_flow.flow_slug);

  -- Fences of one flow come and go one after the other. Claims need not wait.
  perform from pgflow.flows as flow where flow.flow_slug = unfence_flow.flow_slug for no key update;

  perform
  from pgflow.worker_functions as known
  where known.function_name in (
    select fence.function_name
    from pgflow.fences as fence
    where fence.flow_slug = unfence_flow.flow_slug
      and fence.restored_at is null
  )
  order by known.function_name collate "C"
  for no key update;

  update pgflow.worker_functions as known
  set
    enabled = fence.was_enabled,
    disabled_at = case when not fence.was_enabled then clock_timestamp() end,
    disabled_reason = case
      when not fence.was_enabled then format('it was disabled before flow "%s" was fenced', fence.flow_slug)
    end,
    updated_at = clock_timestamp()
  from pgflow.fences as fence
  where fence.flow_slug = unfence_flow.flow_slug
    and fence.restored_at is null
    and known.function_name = fence.function_name
    and not known.enabled
    and pgflow.is_disabled_by_fence(known)
    and not exists (
      select
      from pgflow.fences as other
      where other.function_name = fence.function_name
        and other.flow_slug <> fence.flow_slug
        and other.restored_at is null
    );

  return query
  with lifted as (
    update pgflow.fences as fence
    set restored_at = clock_timestamp()
    where fence.flow_slug = unfence_flow.flow_slug
      and fence.restored_at is null
    returning fence.function_name
  )
  select
    lifted.function_name,
    coalesce(known.enabled, false),
    case
      when known.function_name is null then 'the function is no longer known'
      when known.enabled then null
      when other.flow_slug is not null then format('flow "%s" is fenced with it: %s', other.flow_slug, other.reason)
      else coalesce(known.disabled_reason, 'no reason was recorded')
    end
  from lifted
  left join pgflow.worker_functions as known on known.function_name = lifted.function_name
  left join lateral (
    select fence.flow_slug, fence.reason
    from pgflow.fences as fence
    where fence.function_name = lifted.function_name
      and fence.flow_slug <> unfence_flow.flow_slug
      and fence.restored_at is null
      and pgflow.is_disabled_by_fence(known)
    order by fence.fenced_at
    limit 1
  ) as other on true
  order by lifted.function_name collate "C";
end
$function$;

comment on function pgflow.unfence_flow(text) is
'Lifts the fence of a flow: each function is enabled or disabled again as it was before, unless another flow is still fenced with it or somebody disabled it meanwhile. Returns the functions, whether they are enabled now, and if not, why. Workers do not come back by themselves: ensure_workers() or whoever runs the processes starts new ones. Lifting a fence that is not there does nothing. Raises PF018 for a flow that is not known and was never fenced.';

create function pgflow.way_to_enable(function_name text, flow_slug text)
returns text
language sql
stable
begin atomic
  select coalesce(
    (
      select format('select * from pgflow.unfence_flow(%L)', fence.flow_slug)
      from pgflow.fences as fence
      where fence.restored_at is null
        and (
          fence.function_name = way_to_enable.function_name
          or fence.flow_slug = way_to_enable.flow_slug
        )
      order by fence.fenced_at
      limit 1
    ),
    format('select pgflow.enable_worker_function(%L)', way_to_enable.function_name)
  );
end;

comment on function pgflow.way_to_enable(text, text) is
'Internal: the call that lets a worker function that is disabled or fenced work for a flow again, as text for a hint.';

create view pgflow.stalled_tasks as
select
  task.flow_slug,
  task.run_id,
  task.step_slug,
  task.task_index,
  step.step_index,
  task.queue_name,
  task.attempts_count,
  step.max_attempts,
  task.requeued_count,
  task.last_worker_id,
  task.lease_extended_until,
  pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until) as recovery_boundary,
  task.requeued_count < 3 and task.attempts_count < step.max_attempts as may_start_again
from pgflow.step_tasks as task
-- Subqueries of their own, so that it is always the started tasks, few of them, that lead to the rest.
cross join lateral (
  select options.*
  from pgflow.step_options as options
  where options.flow_slug = task.flow_slug
    and options.step_slug = task.step_slug
  limit 1
) as step
cross join lateral (
  select found.status
  from pgflow.step_states as found
  where found.run_id = task.run_id
    and found.step_slug = task.step_slug
  limit 1
) as state
cross join lateral (
  select found.status
  from pgflow.runs as found
  where found.run_id = task.run_id
  limit 1
) as run
where task.status = 'started'
  and pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until) <= clock_timestamp()
  and state.status = 'started'
  and run.status = 'started';

comment on view pgflow.stalled_tasks is
'Started tasks past their recovery boundary: their worker is gone, or too slow and not extending its lease. may_start_again says whether recovery queues the task again or fails it.';

create function pgflow.delete_messages(messages pgflow.message_ref[])
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
  deleted_here bigint;
  deleted bigint := 0;
begin
  for batch in
    select
      queue_table.relname as table_name,
      array_agg(distinct message.msg_id) as msg_ids
    from unnest(messages) as message
    -- Ended tasks have their messages in the archive. One that is still on the queue, for whatever reason, must go too:
    -- without its task it would be unsupported work.
    cross join lateral (
      values
      (1, 'q_' || message.queue_name),
      (2, 'a_' || message.queue_name)
    ) as place (position, table_name)
    -- A queue that somebody dropped has no messages left.
    inner join pg_class as queue_table
      on queue_table.relname = place.table_name
      and queue_table.relnamespace = 'pgmq'::regnamespace
    group by message.queue_name, place.position, queue_table.relname
    order by message.queue_name collate "C", place.position
  loop
    execute format(
      $sql$
        with locked as materialized (
          select msg_id from pgmq.%1$I where msg_id = any($1) order by msg_id for update
        )
        delete from pgmq.%1$I as message
        using locked
        where message.msg_id = locked.msg_id
      $sql$,
      batch.table_name
    )
    using batch.msg_ids;

    get diagnostics deleted_here = row_count;
    deleted := deleted + deleted_here;
  end loop;

  return deleted;
end
$function$;

comment on function pgflow.delete_messages(pgflow.message_ref[]) is
'Internal: deletes messages for good, from their queues and from the archives of these, and returns how many there were. Locks messages in the order of queue and id.';

create function pgflow.prune_data_older_than(retention_interval interval, batch_size int default 1000)
returns table (what text, deleted bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  ended_before timestamptz;
  flow_slugs text[];
begin
  if retention_interval is null or retention_interval < interval '0' then
    raise exception using
      errcode = 'PF019',
      message = format('Data can''t be kept for %s.', coalesce(retention_interval::text, 'null')),
      detail = 'retention_interval is how long ago a run must have ended to be deleted; nothing was deleted.',
      hint = 'Pass an interval from 0, for example interval ''30 days''.';
  end if;

  if coalesce(batch_size, 0) < 1 then
    raise exception using
      errcode = 'PF019',
      message = format('A batch of %s runs can''t be deleted.', coalesce(batch_size::text, 'null')),
      detail = 'batch_size is a whole number from 1; nothing was deleted.',
      hint = 'Leave batch_size out, or pass how many runs to delete at most.';
  end if;

  -- Capped at a millennium: the server's dates come to an end.
  ended_before := clock_timestamp() - least(retention_interval, interval '1000 years');

  -- Pruning takes runs before queues, recompilation and deletion queues before runs. So it keeps them away from the
  -- flows that it works on, and leaves alone those that they are at.
  flow_slugs := array(
    select flow.flow_slug
    from pgflow.flows as flow
    where exists (
      select
      from pgflow.runs as run
      where run.flow_slug = flow.flow_slug
        and coalesce(run.completed_at, run.failed_at) < ended_before
    )
  );
  flow_slugs := array(
    select flow.slug
    from unnest(flow_slugs) as flow (slug)
    where pg_try_advisory_xact_lock_shared(pgflow.flow_key(flow.slug))
  );

  return query
  select 'workers', pgflow.prune_workers(ended_before, batch_size);

  return query
  select pruned.what, pruned.deleted
  from pgflow.prune_runs(flow_slugs, ended_before, batch_size) as pruned;
end
$function$;

comment on function pgflow.prune_data_older_than(interval, int) is
'Deletes one batch of runs that ended longer ago than retention_interval, with their step states, tasks and archived messages, and one batch of workers that stopped or fell silent as long ago and whose tasks are gone; of each function and subscription the last worker stays. Runs in progress are not touched, nor what somebody is locking: it is left for the next call. Returns what was deleted (workers, runs, step_states, step_tasks, messages): call it, a transaction each, until all are 0. Raises PF019 for a negative interval or a batch_size under 1.';

create function pgflow.prune_runs(flow_slugs text[], ended_before timestamptz, batch_size int)
returns table (what text, deleted bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  run_ids uuid[];
  messages pgflow.message_ref[];
  runs bigint;
  states bigint;
  tasks bigint;
begin
  run_ids := array(
    select run.run_id
    from pgflow.runs as run
    where run.flow_slug = any(flow_slugs)
      and coalesce(run.completed_at, run.failed_at) < ended_before
    order by run.run_id
    limit prune_runs.batch_size
    for update skip locked
  );

  perform
  from pgflow.step_states as state
  inner join pgflow.steps as step
    on step.flow_slug = state.flow_slug
    and step.step_slug = state.step_slug
  where state.run_id = any(run_ids)
  order by state.run_id, step.step_index
  for update of state;

  perform
  from pgflow.step_tasks as task
  inner join pgflow.steps as step
    on step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug
  where task.run_id = any(run_ids)
  order by task.run_id, step.step_index, task.task_index
  for update of task;

  -- Only from queues that are the flow's own: on another one the same ids name the messages of somebody else.
  messages := array(
    select row(task.queue_name, task.message_id)::pgflow.message_ref
    from pgflow.step_tasks as task
    inner join pgflow.queues as queue
      on queue.queue_name = task.queue_name
      and queue.flow_slug = task.flow_slug
    where task.run_id = any(run_ids)
      and task.message_id is not null
  );

  delete from pgflow.step_tasks as task where task.run_id = any(run_ids);
  get diagnostics tasks = row_count;

  delete from pgflow.step_states as state where state.run_id = any(run_ids);
  get diagnostics states = row_count;

  delete from pgflow.runs as run where run.run_id = any(run_ids);
  get diagnostics runs = row_count;

  return query
  values
  ('runs', runs),
  ('step_states', states),
  ('step_tasks', tasks),
  ('messages', pgflow.delete_messages(messages));
end
$function$;

comment on function pgflow.prune_runs(text[], timestamptz, int) is
'Internal: deletes one batch of runs of some flows, which the caller has locked, that ended before a time, with all that belongs to them. Runs that are locked are left for the next batch. Takes every lock in the common order.';

create function pgflow.prune_workers(silent_since timestamptz, batch_size int)
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  pruned bigint;
begin
  with ranked as (
    select
      worker.worker_id,
      row_number() over (
        partition by worker.function_name, worker.queue_name, worker.flow_slug, worker.step_slug
        order by worker.last_heartbeat_at desc, worker.worker_id
      ) as rank
    from pgflow.workers as worker
  ),
  candidate as (
    select worker.worker_id
    from ranked
    inner join pgflow.workers as worker on worker.worker_id = ranked.worker_id
    where ranked.rank > 1
      and not pgflow.worker_is_live(worker)
      and coalesce(worker.stopped_at, worker.last_heartbeat_at) < silent_since
      -- Not before its tasks are gone: deleting the worker would have to write to each of them.
      and not exists (
        select
        from pgflow.step_tasks as task
        where task.last_worker_id = worker.worker_id
      )
    order by worker.worker_id
    limit prune_workers.batch_size
    for update of worker skip locked
  )
  delete from pgflow.workers as worker
  using candidate
  where worker.worker_id = candidate.worker_id;

  get diagnostics pruned = row_count;
  return pruned;
end
$function$;

comment on function pgflow.prune_workers(timestamptz, int) is
'Internal: deletes one batch of workers that stopped, or were last heard of, before silent_since, that no task refers to, and that are not the last of their function and subscription. Returns how many.';

create function pgflow.quarantine_message(queue_name text, msg_id bigint)
returns boolean
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  owner text;
  found_count bigint;
begin
  -- Keeps whoever recompiles or deletes the flow from taking the queue away meanwhile.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(queue.flow_slug))
  from pgflow.queues as queue
  where queue.queue_name = quarantine_message.queue_name;

  perform pgflow.check_queue(quarantine_message.queue_name);

  select format('task %s of step "%s" in run %s', task.task_index, task.step_slug, task.run_id)
  into owner
  from pgflow.step_tasks as task
  where task.queue_name = quarantine_message.queue_name
    and task.message_id = quarantine_message.msg_id;

  if owner is not null then
    raise exception using
      errcode = 'PF019',
      message = format('Message %s of queue "%s" is not foreign.', quarantine_message.msg_id, quarantine_message.queue_name),
      detail = format('It belongs to %s.', owner),
      hint = 'Only messages without a task can be moved aside. Let a worker claim it, or skip or fail its step.';
  end if;

  execute format(
    $sql$
      update pgmq.%I as message
      set headers = coalesce(message.headers, '{}') || jsonb_build_object(
        'pgflow_quarantine', jsonb_build_object('at', clock_timestamp(), 'reason', 'no task has this message')
      )
      where message.msg_id = $1
    $sql$,
    'q_' || quarantine_message.queue_name
  )
  using quarantine_message.msg_id;
  get diagnostics found_count = row_count;

  if found_count = 0 then
    return false;
  end if;

  perform pgflow.archive_messages(
    array[row(quarantine_message.queue_name, quarantine_message.msg_id)::pgflow.message_ref]
  );

  return true;
end
$function$;

comment on function pgflow.quarantine_message(text, bigint) is
'Moves a message that has no task from its queue to the queue''s archive, with a header pgflow_quarantine that says when and why. True when it was moved, false when the queue does not hold it. Raises PF019 for an unknown queue, and for a message that belongs to a task.';

create function pgflow.repair_queues(flow_slug text default null)
returns table (queue_name text, action text, count bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow_slugs text[];
  queue record;
  highest_id bigint;
  made_at timestamptz;
  sent bigint;
begin
  if repair_queues.flow_slug is not null
    and not exists (select from pgflow.flows as flow where flow.flow_slug = repair_queues.flow_slug) then
    perform pgflow.refuse_unknown_flow(repair_queues.flow_slug);
  end if;

  -- Nobody starts, claims or finishes while queues are made; a claim gives way, the others wait.
  flow_slugs := array(
    select taken.flow_slug
    from (
      -- Not in a condition, which might be looked at before the rows are in order.
      select flow.flow_slug, pgflow.take_flow(flow.flow_slug) as is_there
      from (
        select every.flow_slug
        from pgflow.flows as every
        where every.flow_slug = coalesce(repair_queues.flow_slug, every.flow_slug)
        order by every.flow_slug collate "C"
      ) as flow
    ) as taken
    where taken.is_there
  );

  for queue in
    select
      owner.queue_name,
      owner.physical_created_at,
      physical.created_at,
      physical.created_at is not null and physical.has_queue_table and physical.has_archive_table as is_whole
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select own.queue_name from pgflow.queues as own where own.flow_slug = any(flow_slugs))
    ) as physical
      on physical.queue_name = owner.queue_name
    -- Those alone that are taken: others come and go meanwhile.
    where owner.flow_slug = any(flow_slugs)
    order by owner.queue_name collate "C"
  loop
    if not queue.is_whole or queue.created_at <> queue.physical_created_at then
      -- An id that a worker still holds from the lost queue must never name another task.
      highest_id := pgflow.highest_message_id(queue.queue_name);
      made_at := pgflow.make_queue(queue.queue_name, highest_id);

      update pgflow.queues as owner
      set physical_created_at = made_at
      where owner.queue_name = queue.queue_name;

      return query select queue.queue_name, case when queue.is_whole then 'taken over' else 'made' end, 1::bigint;
    end if;

    execute format(
      $sql$
        with lost as materialized (
          select task.flow_slug, task.run_id, task.step_slug, task.task_index
          from pgflow.step_tasks as task
          where task.queue_name = $1
            and task.status = 'queued'
            and not exists (select from pgmq.%1$I as message where message.msg_id = task.message_id)
          order by task.run_id, task.step_slug, task.task_index
          for no key update skip locked
        ),
        sent as (
          insert into pgmq.%1$I (vt, message)
          select
            clock_timestamp(),
            jsonb_build_object(
              'flow_slug', lost.flow_slug,
              'run_id', lost.run_id,
              'step_slug', lost.step_slug,
              'task_index', lost.task_index
            )
          from lost
          order by lost.run_id, lost.step_slug, lost.task_index
          returning msg_id, message
        )
        update pgflow.step_tasks as task
        set message_id = sent.msg_id
        from sent
        where task.run_id = (sent.message ->> 'run_id')::uuid
          and task.step_slug = sent.message ->> 'step_slug'
          and task.task_index = (sent.message ->> 'task_index')::int
      $sql$,
      'q_' || queue.queue_name
    )
    using queue.queue_name;
    get diagnostics sent = row_count;

    if sent > 0 then
      return query select queue.queue_name, 'sent', sent;
    end if;
  end loop;
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      repair_queues.flow_slug,
      (
        select count(*)
        from pgflow.queues as owner
        where owner.flow_slug = coalesce(repair_queues.flow_slug, owner.flow_slug)
      ),
      0,
      sqlerrm
    );
end
$function$;

comment on function pgflow.repair_queues(text) is
'Mends the queues of a flow, or of all: makes an owned queue again that is gone (made), accepts one that somebody made again (taken over), and sends the message of a queued task anew where it is gone (sent, with the number of messages). One row for each thing done, none when all is well, so it can be run again at any time. A queue that is made again continues its numbering. Raises PF018 (unknown flow), PF017 (lock table full: repair flow by flow).';

create function pgflow.requeue_stalled_tasks()
returns int
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
as $function$
declare
  stalled pgflow.stalled_tasks[] := array(select candidate from pgflow.stalled_tasks as candidate);
  flow_slugs text[];
  run_ids uuid[];
  lost pgflow.task_result[];
  messages pgflow.message_ref[];
begin
  if stalled = '{}' then
    return 0;
  end if;

  -- A flow that is just being recompiled or deleted is passed over: its tasks go away, and waiting for it would hold up
  -- the recovery of all others. So is whatever else somebody is working on: it is looked at again by the next sweep.
  flow_slugs := array(
    select flow.flow_slug
    from (select distinct task.flow_slug from unnest(stalled) as task) as flow
    where pg_try_advisory_xact_lock_shared(pgflow.flow_key(flow.flow_slug))
  );

  -- First the tasks that may not start again: ending them takes the locks of runs, which come before those of tasks.
  run_ids := array(
    select run.run_id
    from pgflow.runs as run
    where run.run_id = any(array(
      select distinct task.run_id
      from unnest(stalled) as task
      where not task.may_start_again
        and task.flow_slug = any(flow_slugs)
    ))
    order by run.run_id
    for no key update skip locked
  );

  lost := array(
    select
      row(
        task.run_id,
        task.step_slug,
        task.task_index,
        task.attempts_count,
        'stalled',
        null,
        format(
          'Attempt %s of %s was lost with its worker; requeued %s times.',
          task.attempts_count, task.max_attempts, task.requeued_count
        )
      )::pgflow.task_result
    from (
      select every.*
      from unnest(stalled) as every
      where not every.may_start_again
        and every.run_id in (select unnest(run_ids))
      order by every.run_id, every.step_index, every.task_index
    ) as task
    cross join lateral (
      select found.status
      from pgflow.step_tasks as found
      where found.run_id = task.run_id
        and found.step_slug = task.step_slug
        and found.task_index = task.task_index
      limit 1
      for no key update skip locked
    ) as locked
  );

  if lost <> '{}' then
    perform pgflow.settle_tasks(lost);
  end if;

  with picked as materialized (
    select task.run_id, task.step_slug, task.task_index
    from (
      select every.*
      from unnest(stalled) as every
      where every.may_start_again
        and every.flow_slug = any(flow_slugs)
      order by every.run_id, every.step_index, every.task_index
    ) as task
    cross join lateral (
      -- Checked again on the row as it is once its lock is ours: it may have been finished or extended meanwhile.
      select found.status
      from pgflow.step_tasks as found
      where found.run_id = task.run_id
        and found.step_slug = task.step_slug
        and found.task_index = task.task_index
        and found.status = 'started'
        and found.attempts_count = task.attempts_count
        and found.lease_extended_until is not distinct from task.lease_extended_until
      limit 1
      for no key update skip locked
    ) as locked
    limit cardinality(stalled)
  ),
  requeued as (
    update pgflow.step_tasks as task
    set
      status = 'queued',
      started_at = null,
      queued_at = clock_timestamp(),
      requeued_count = task.requeued_count + 1,
      last_requeued_at = clock_timestamp()
    from picked
    where task.run_id = picked.run_id
      and task.step_slug = picked.step_slug
      and task.task_index = picked.task_index
    returning task.queue_name, task.message_id
  )
  select array_agg(row(requeued.queue_name, requeued.message_id)::pgflow.message_ref)
  into messages
  from requeued;

  if messages is null then
    return 0;
  end if;

  perform pgflow.set_visibility(messages, array_fill(clock_timestamp(), array[cardinality(messages)]));

  return cardinality(messages);
end
$function$;

comment on function pgflow.requeue_stalled_tasks() is
'Takes tasks that are past their recovery boundary from workers that are gone, and returns how many were queued again; these can be read at once. A task is requeued three times at most, and only while it has attempts left (a lost attempt is one); then it fails by the normal path, with permanently_stalled_at set, and its step''s whenExhausted decides. Run it every few seconds, by setup_requeue_stalled_tasks_cron() or any scheduler. As in pgflow 0.14.';

create function pgflow.setup_requeue_stalled_tasks_cron(cron_interval text default '15 seconds')
returns text
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.schedule_cron_job(
    'pgflow_requeue_stalled_tasks', cron_interval, 'select pgflow.requeue_stalled_tasks();'
  );

  return format('Scheduled pgflow_requeue_stalled_tasks (%s).', cron_interval);
end
$function$;

comment on function pgflow.setup_requeue_stalled_tasks_cron(text) is
'Schedules requeue_stalled_tasks() through pg_cron, in place of an earlier job of that name. cron_interval is what pg_cron takes: seconds (pg_cron 1.5 and newer) or a cron expression. Returns what was scheduled. Raises PF019 without pg_cron, or when it doesn''t take the interval. As in pgflow 0.14.';

create function pgflow.queue_depths(flow_slug text default null)
returns table (
  queue_name text,
  messages_total bigint,
  messages_visible bigint,
  messages_in_flight bigint,
  messages_delayed bigint,
  oldest_enqueued_at timestamptz,
  visible_since timestamptz
)
language plpgsql
stable
cost 1000
rows 10
set search_path to pg_catalog, pg_temp
as $function$
declare
  owned_queue text;
begin
  for owned_queue in
    select queue.queue_name
    from pgflow.queues as queue
    where queue_depths.flow_slug is null
      or queue.flow_slug = queue_depths.flow_slug
    -- The order in which recompilation locks queue tables: in another one the two could deadlock.
    order by queue.queue_name collate "C"
  loop
    begin
      return query execute format(
        $sql$
          select
            $1,
            count(*),
            count(*) filter (where message.vt <= $2),
            count(*) filter (where message.vt > $2 and started.message_id is not null),
            count(*) filter (where message.vt > $2 and started.message_id is null),
            min(message.enqueued_at),
            min(message.vt) filter (where message.vt <= $2)
          from pgmq.%I as message
          left join (
            select task.message_id
            from pgflow.step_tasks as task
            where task.queue_name = $1
              and task.status = 'started'
          ) as started on started.message_id = message.msg_id
        $sql$,
        'q_' || owned_queue
      )
      using owned_queue, clock_timestamp();
    exception
      -- A view of what is wrong must not itself fail over a queue that somebody dropped, or put something else in its place.
      when undefined_table or undefined_column or undefined_function or wrong_object_type then
        return query select owned_queue, null::bigint, null::bigint, null::bigint, null::bigint, null::timestamptz, null::timestamptz;
    end;
  end loop;
end
$function$;

comment on function pgflow.queue_depths(text) is
'How many messages each owned queue (of one flow, or of all) holds: visible ones can be read now; those in flight belong to a started task and are hidden; delayed ones are hidden for another reason, such as a start delay, a retry or a read without a claim. visible_since: when the one that waits longest became visible. Nulls: the queue''s table is gone. Reads each queue once.';

create function pgflow.queue_is_unreplaced(queue_name text)
returns boolean
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  -- A query on pg_class sees the table as of the snapshot, to_regclass() as of now.
  select
    (
      select class.oid
      from pg_class as class
      where class.relname = 'q_' || queue_is_unreplaced.queue_name
        and class.relnamespace = 'pgmq'::regnamespace
    ) is not distinct from to_regclass(format('pgmq.%I', 'q_' || queue_is_unreplaced.queue_name))::oid;
$function$;

comment on function pgflow.queue_is_unreplaced(text) is
'Internal: false when a queue''s table was dropped or made again since the snapshot of the query was taken. What was read of it then doesn''t belong to the tasks of that snapshot.';

create function pgflow.queue_messages(flow_slug text default null)
returns table (queue_name text, msg_id bigint, enqueued_at timestamptz, visible_at timestamptz)
language plpgsql
stable
cost 1000
set search_path to pg_catalog, pg_temp
as $function$
declare
  owned_queue text;
begin
  for owned_queue in
    select queue.queue_name
    from pgflow.queues as queue
    where queue_messages.flow_slug is null
      or queue.flow_slug = queue_messages.flow_slug
    -- The order in which recompilation locks queue tables: in another one the two could deadlock.
    order by queue.queue_name collate "C"
  loop
    begin
      return query execute format(
        'select $1, message.msg_id, message.enqueued_at, message.vt from pgmq.%I as message', 'q_' || owned_queue
      )
      using owned_queue;
    exception
      -- A queue that somebody dropped, or put something else in its place, holds no messages.
      when undefined_table or undefined_column or undefined_function or wrong_object_type then
        null;
    end;
  end loop;
end
$function$;

comment on function pgflow.queue_messages(text) is
'Internal: every message, visible or not, on the owned queues of one flow or of all.';

create view pgflow.unserved_queues as
select
  flow.flow_slug,
  owner.step_slug,
  owner.queue_name,
  depth.messages_total,
  clock_timestamp() - depth.oldest_enqueued_at as oldest_message_age,
  pool.last_heartbeat_at,
  format(
    '%s messages wait and no live worker serves this queue; a worker of it was last heard of: %s%s',
    depth.messages_total,
    coalesce(pool.last_heartbeat_at::text, 'never'),
    '; the flow is fenced: ' || fence.reason
  ) as reason
from pgflow.flows as flow
-- By flow, so that a query about one flow reads the queues of that flow only.
cross join lateral pgflow.queue_depths(flow.flow_slug) as depth
inner join pgflow.queues as owner on owner.queue_name = depth.queue_name
cross join lateral (
  select
    count(*) filter (where worker.is_serving) as live_workers,
    max(worker.last_heartbeat_at) as last_heartbeat_at
  from pgflow.queue_workers as worker
  where worker.queue_name = owner.queue_name
) as pool
left join lateral (
  select open.reason
  from pgflow.fences as open
  where open.flow_slug = flow.flow_slug
    and open.restored_at is null
  order by open.fenced_at
  limit 1
) as fence on true
where depth.messages_total > 0
  and pool.live_workers = 0;

comment on view pgflow.unserved_queues is
'Owned queues on which work waits and that no live worker serves: what coverage_gaps() returns.';
comment on column pgflow.unserved_queues.step_slug is 'Null: every step of a flow-mode flow.';
comment on column pgflow.unserved_queues.last_heartbeat_at is
'When any worker of the queue was last heard of; null: never.';

create function pgflow.check_integrity(flow_slug text default null)
returns table (code text, subject text, detail text)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if check_integrity.flow_slug is not null
    and not exists (select from pgflow.flows as flow where flow.flow_slug = check_integrity.flow_slug)
  then
    perform pgflow.refuse_unknown_flow(check_integrity.flow_slug);
  end if;

  return query
  with fault as (
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.ownership_faults(check_integrity.flow_slug) as found_fault
    union all
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.counter_faults(check_integrity.flow_slug) as found_fault
    union all
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.status_faults(check_integrity.flow_slug) as found_fault
    union all
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.time_faults(check_integrity.flow_slug) as found_fault
    union all
    select
      replace(found_fault.kind, ' ', '_'),
      case
        when found_fault.run_id is null
          then format('message %s on queue "%s"', found_fault.msg_id, found_fault.queue_name)
        else format('task %s of step "%s" of run %s', found_fault.task_index, found_fault.step_slug, found_fault.run_id)
      end,
      case
        when found_fault.run_id is null then found_fault.detail
        else format(
          'message %s of queue "%s": %s',
          coalesce(found_fault.msg_id::text, '(none)'),
          found_fault.queue_name,
          found_fault.detail
        )
      end
    from pgflow.message_faults(check_integrity.flow_slug) as found_fault
  )
  select fault.code, fault.subject, fault.detail
  from fault
  order by fault.code collate "C", fault.subject collate "C", fault.detail collate "C";
end
$function$;

comment on function pgflow.check_integrity(text) is
'Every promise of the engine as a query, for one flow or for all; no rows: sound. Compares tasks with messages, counters with what they count, statuses of tasks, steps and runs with each other, routes and queues with their witnesses, and times with their order. Changes nothing, takes one snapshot, reads everything: for tests and for doubt. Raises PF018 for an unknown flow.';

create function pgflow.counter_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  -- Counters matter while a run goes on; one that failed keeps them as they were then.
  with state as (
    select state.*
    from pgflow.runs as run
    inner join pgflow.step_states as state on state.run_id = run.run_id
    where run.status = 'started'
      and (only_flow is null or run.flow_slug = only_flow)
  ),
  tasks as (
    select
      state.run_id,
      state.step_slug,
      state.remaining_tasks,
      state.initial_tasks,
      count(task.run_id) as every,
      count(task.run_id) filter (where pgflow.task_is_active(task.status)) as active
    from state
    left join pgflow.step_tasks as task
      on task.run_id = state.run_id
      and task.step_slug = state.step_slug
    where state.status = 'started'
    group by state.run_id, state.step_slug, state.remaining_tasks, state.initial_tasks
  ),
  deps as (
    select
      state.run_id,
      state.step_slug,
      state.remaining_deps,
      count(source.run_id) as open
    from state
    left join pgflow.deps as dep
      on dep.flow_slug = state.flow_slug
      and dep.step_slug = state.step_slug
    left join pgflow.step_states as source
      on source.run_id = state.run_id
      and source.step_slug = dep.dep_slug
      and source.status not in ('completed', 'skipped')
    where state.status in ('created', 'started')
    group by state.run_id, state.step_slug, state.remaining_deps
  ),
  steps as (
    select
      run.run_id,
      run.remaining_steps,
      flow.queue_mode,
      (select count(*) from pgflow.steps as step where step.flow_slug = run.flow_slug) as defined,
      count(state.run_id) as every,
      count(state.run_id) filter (where state.status in ('created', 'started')) as open
    from pgflow.runs as run
    inner join pgflow.flows as flow on flow.flow_slug = run.flow_slug
    left join pgflow.step_states as state on state.run_id = run.run_id
    where run.status = 'started'
      and (only_flow is null or run.flow_slug = only_flow)
    group by run.run_id, flow.queue_mode
  )
  select
    'remaining_tasks',
    format('step "%s" of run %s', tasks.step_slug, tasks.run_id),
    format('remaining_tasks is %s, active tasks are %s', coalesce(tasks.remaining_tasks::text, 'null'), tasks.active)
  from tasks
  where tasks.remaining_tasks is distinct from tasks.active
  union all
  select
    'initial_tasks',
    format('step "%s" of run %s', tasks.step_slug, tasks.run_id),
    format('initial_tasks is %s, tasks are %s', coalesce(tasks.initial_tasks::text, 'null'), tasks.every)
  from tasks
  where tasks.initial_tasks is distinct from tasks.every
  union all
  select
    'remaining_deps',
    format('step "%s" of run %s', deps.step_slug, deps.run_id),
    format('remaining_deps is %s, dependencies that have not ended are %s', deps.remaining_deps, deps.open)
  from deps
  where deps.remaining_deps <> deps.open
  union all
  select
    'remaining_steps',
    format('run %s', steps.run_id),
    format('remaining_steps is %s, steps that have not ended are %s', steps.remaining_steps, steps.open)
  from steps
  where steps.remaining_steps <> steps.open
  union all
  select
    'step_states',
    format('run %s', steps.run_id),
    format('its flow has %s steps, the run has %s', steps.defined, steps.every)
  from steps
  -- A flow-mode flow can get another step while runs are under way that know nothing of it.
  where case steps.queue_mode when 'flow' then steps.defined < steps.every else steps.defined <> steps.every end;
$function$;

comment on function pgflow.counter_faults(text) is
'Internal: counters of runs in progress, of one flow or of all, that differ from what they count.';

create function pgflow.coverage_gaps(flow_slug text default null)
returns setof pgflow.unserved_queues
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if coverage_gaps.flow_slug is not null
    and not exists (select from pgflow.flows as flow where flow.flow_slug = coverage_gaps.flow_slug)
  then
    perform pgflow.refuse_unknown_flow(coverage_gaps.flow_slug);
  end if;

  return query
  select gap.*
  from pgflow.unserved_queues as gap
  where coverage_gaps.flow_slug is null
    or gap.flow_slug = coverage_gaps.flow_slug
  order by gap.flow_slug collate "C", gap.step_slug collate "C";
end
$function$;

comment on function pgflow.coverage_gaps(text) is
'The part of stuck_work about missing workers, of one flow or of all: queues on which work waits and that no live worker serves. Raises PF018 for an unknown flow.';

create function pgflow.flow_diagram(flow_slug text)
returns text
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if not exists (select from pgflow.flows as flow where flow.flow_slug = flow_diagram.flow_slug) then
    perform pgflow.refuse_unknown_flow(flow_diagram.flow_slug);
  end if;

  return (
    with step as (
      select
        step.step_slug,
        step.step_index,
        step.step_type,
        step.queue_name,
        step.deps_count,
        nullif(
          concat_ws(
            ' and ',
            case when step.required_input_pattern is not null then 'if' end,
            case when step.forbidden_input_pattern is not null then 'ifNot' end
          ),
          ''
        ) || ', else ' || step.when_unmet as condition
      from pgflow.steps as step
      where step.flow_slug = flow_diagram.flow_slug
    ),
    line as (
      select 0 as section, 0 as target, 0 as source, 'flowchart LR' as code
      union all
      select
        1,
        step.step_index,
        0,
        -- The doubled frame is Mermaid's for something that runs many times.
        format(
          case step.step_type when 'map' then '  s%s[[%s]]' else '  s%s[%s]' end,
          step.step_index,
          pgflow.mermaid_label(
            step.step_slug || case step.step_type when 'map' then ' (map)' else '' end,
            step.queue_name
          )
        )
      from step
      union all
      select
        2,
        step.step_index,
        coalesce(source.step_index, -1),
        format(
          '  %s -->%s s%s',
          coalesce('s' || source.step_index, 'input(["input"])'),
          coalesce('|' || pgflow.mermaid_label(step.condition) || '|', ''),
          step.step_index
        )
      from step
      left join pgflow.deps as dep
        on dep.flow_slug = flow_diagram.flow_slug
        and dep.step_slug = step.step_slug
      left join step as source on source.step_slug = dep.dep_slug
      -- The condition of a root step is about the run's input, which is drawn only where there is such a condition.
      where source.step_slug is not null
        or step.condition is not null
    )
    select string_agg(line.code, chr(10) order by line.section, line.target, line.source)
    from line
  );
end
$function$;

comment on function pgflow.flow_diagram(text) is
'A flow as a Mermaid flowchart: each step with its queue, maps in a double frame, an edge for each dependency, marked with if or ifNot and what becomes of the step when its condition is not met. Raises PF018 for an unknown flow.';

create function pgflow.mermaid_label(variadic lines text[])
returns text
language sql
immutable
parallel safe
begin atomic
  select
    -- The number sign first: it begins the codes of the others.
    '"' || string_agg(
      replace(replace(replace(replace(line.content, '#', '#35;'), '"', '#34;'), '<', '#60;'), '>', '#62;'),
      '<br/>'
      order by line.position
    ) || '"'
  from unnest(lines) with ordinality as line (content, position);
end;

comment on function pgflow.mermaid_label(text[]) is
'Internal: lines of text as a quoted Mermaid label, in which nothing is markup but the breaks between them. Null for no text.';

create function pgflow.message_faults(only_flow text default null)
returns table (
  kind text,
  flow_slug text,
  step_slug text,
  queue_name text,
  run_id uuid,
  task_index int,
  msg_id bigint,
  since timestamptz,
  detail text
)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with message as materialized (
    select message.queue_name, message.msg_id, message.enqueued_at, message.visible_at
    from pgflow.queue_messages(only_flow) as message
  ),
  active as (
    select task.*
    from pgflow.step_tasks as task
    where pgflow.task_is_active(task.status)
      and (only_flow is null or task.flow_slug = only_flow)
  )
  select
    case
      when message.msg_id is null then 'task without a message'
      when active.run_id is null then 'message without a task'
      else 'message hidden too long'
    end as kind,
    coalesce(active.flow_slug, queue.flow_slug) as flow_slug,
    coalesce(active.step_slug, queue.step_slug) as step_slug,
    coalesce(active.queue_name, queue.queue_name) as queue_name,
    active.run_id,
    active.task_index,
    coalesce(active.message_id, message.msg_id) as msg_id,
    coalesce(active.started_at, active.queued_at, message.enqueued_at) as since,
    case
      when message.msg_id is null then 'its message is not on the queue, so no worker can find the task'
      when active.run_id is null then 'no active task belongs to it; a worker that reads it stops with PF011'
      else format(
        'no worker can read it before %s, an hour and more after any delay of its step; '
        'select pgmq.set_vt(''%s'', %s, 0) shows it now',
        message.visible_at,
        message.queue_name,
        message.msg_id
      )
    end as detail
  from active
  full outer join message
    on message.queue_name = active.queue_name
    and message.msg_id = active.message_id
  left join pgflow.queues as queue on queue.queue_name = message.queue_name
  left join pgflow.step_options as step
    on step.flow_slug = active.flow_slug
    and step.step_slug = active.step_slug
  where active.run_id is null
    -- Recompilation replaces a queue with its tasks, but the new one shows at once and the tasks by snapshot.
    or (message.msg_id is null and pgflow.queue_is_unreplaced(active.queue_name))
    -- An hour for readers that hide what they have not claimed yet.
    or (
      active.status = 'queued'
      and message.visible_at > clock_timestamp() + interval '1 hour' + make_interval(
        secs => greatest(step.start_delay, pgflow.calculate_retry_delay(step.base_delay, active.attempts_count))
      )
    );
$function$;

comment on function pgflow.message_faults(text) is
'Where tasks and messages of one flow, or of all, don''t match: active tasks without a message on their queue, messages on owned queues without an active task, and messages of queued tasks that are hidden for an hour more than any delay of their step. Reads every active task and every message of the owned queues.';

create function pgflow.ownership_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select
    'route',
    format('flow "%s"', flow.flow_slug),
    fault.fault
  from pgflow.flows as flow
  cross join lateral pgflow.route_faults(flow.flow_slug) as fault
  where only_flow is null or flow.flow_slug = only_flow
  union all
  select
    'queue_without_use',
    format('queue "%s"', queue.queue_name),
    format('it belongs to %s, which does not route to it', pgflow.queue_owner(queue))
  from pgflow.queues as queue
  where (only_flow is null or queue.flow_slug = only_flow)
    and not exists (
      select
      from pgflow.flows as flow
      where flow.flow_slug = queue.flow_slug
        and flow.queue_mode = 'flow'
        and queue.step_slug is null
        and queue.queue_name = lower(flow.flow_slug collate "C")
    )
    and not exists (
      select
      from pgflow.steps as step
      where step.flow_slug = queue.flow_slug
        and step.queue_name = queue.queue_name
    )
  union all
  select
    'task_on_foreign_queue',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format('its message was sent to queue "%s", which does not belong to flow "%s"', task.queue_name, task.flow_slug)
  from pgflow.step_tasks as task
  where (only_flow is null or task.flow_slug = only_flow)
    and pgflow.task_is_active(task.status)
    and not exists (
      select
      from pgflow.queues as queue
      where queue.queue_name = task.queue_name
        and queue.flow_slug = task.flow_slug
        and (queue.step_slug is null or queue.step_slug = task.step_slug)
    );
$function$;

comment on function pgflow.ownership_faults(text) is
'Internal: routes that differ from their witnesses, owned queues that nothing routes to, and active tasks whose message is on a queue that is not theirs; of one flow or of all.';

create view pgflow.queue_coverage as
select
  step.flow_slug,
  step.step_slug,
  step.step_index,
  step.queue_name,
  flow.queue_mode,
  coalesce(pool.live_workers, 0) as live_workers,
  pool.last_heartbeat_at,
  depth.messages_total,
  depth.messages_visible,
  depth.messages_in_flight,
  depth.messages_delayed,
  clock_timestamp() - depth.oldest_enqueued_at as oldest_message_age,
  coalesce(pool.live_workers, 0) > 0 as is_covered
from pgflow.flows as flow
inner join pgflow.steps as step on step.flow_slug = flow.flow_slug
-- By flow, so that a query about one flow reads the queues of that flow only. Distinct, so that they are read once and
-- not for every step: the planner takes another look at a function for free.
left join (
  select distinct
    each_flow.flow_slug,
    queue.*
  from pgflow.flows as each_flow
  cross join lateral pgflow.queue_depths(each_flow.flow_slug) as queue
) as depth
  on depth.flow_slug = step.flow_slug
  and depth.queue_name = step.queue_name
left join (
  select
    worker.queue_name,
    worker.flow_slug,
    count(*) filter (where worker.is_serving) as live_workers,
    max(worker.last_heartbeat_at) as last_heartbeat_at
  from pgflow.queue_workers as worker
  group by worker.queue_name, worker.flow_slug
) as pool
  on pool.queue_name = step.queue_name
  and pool.flow_slug = step.flow_slug;

comment on view pgflow.queue_coverage is
'One row a step: who serves its queue, and what waits there. In flow mode the steps of a flow share one queue, and each of their rows shows the figures of that queue.';
comment on column pgflow.queue_coverage.live_workers is
'Workers of exactly this subscription that are live and may claim.';
comment on column pgflow.queue_coverage.last_heartbeat_at is
'When any worker of the queue, live or not, was last heard of; null: never.';
comment on column pgflow.queue_coverage.messages_total is 'Null: the queue''s table is gone.';
comment on column pgflow.queue_coverage.messages_visible is 'Could be claimed now.';
comment on column pgflow.queue_coverage.messages_in_flight is 'Hidden, and their task is started.';
comment on column pgflow.queue_coverage.messages_delayed is
'Hidden for another reason: a start delay, a retry, a read without a claim.';
comment on column pgflow.queue_coverage.oldest_message_age is
'Since the oldest message was sent; null: the queue is empty.';
comment on column pgflow.queue_coverage.is_covered is 'Whether there is a live worker.';

create view pgflow.queue_sizes as
select
  queue.flow_slug,
  queue.step_slug,
  queue.queue_name,
  pg_total_relation_size(to_regclass(format('pgmq.%I', 'q_' || queue.queue_name))) as queue_bytes,
  pg_total_relation_size(to_regclass(format('pgmq.%I', 'a_' || queue.queue_name))) as archive_bytes
from pgflow.queues as queue;

comment on view pgflow.queue_sizes is
'How large each owned queue and its archive are on disk, with their indexes, in bytes. prune_data_older_than() empties archives; the space is used again, and VACUUM FULL gives it back.';
comment on column pgflow.queue_sizes.step_slug is 'Null: every step of a flow-mode flow.';
comment on column pgflow.queue_sizes.queue_bytes is 'Null: the queue''s table is gone.';
comment on column pgflow.queue_sizes.archive_bytes is 'Null: the archive''s table is gone.';

create view pgflow.run_progress as
select
  run.run_id,
  run.flow_slug,
  run.status,
  run.started_at,
  coalesce(run.completed_at, run.failed_at) as ended_at,
  coalesce(run.completed_at, run.failed_at, clock_timestamp()) - run.started_at as duration,
  step.steps_total,
  step.steps_waiting,
  step.steps_started,
  step.steps_completed,
  step.steps_skipped,
  step.steps_failed,
  task.tasks_total,
  task.tasks_queued,
  task.tasks_started,
  task.tasks_completed,
  task.tasks_failed,
  task.tasks_retried,
  step.waits_for
from pgflow.runs as run
cross join lateral (
  select
    count(*) as steps_total,
    count(*) filter (where state.status = 'created') as steps_waiting,
    count(*) filter (where state.status = 'started') as steps_started,
    count(*) filter (where state.status = 'completed') as steps_completed,
    count(*) filter (where state.status = 'skipped') as steps_skipped,
    count(*) filter (where state.status = 'failed') as steps_failed,
    case
      when run.status = 'started'
        then array_agg(state.step_slug order by state.started_at) filter (where state.status = 'started')
    end as waits_for
  from pgflow.step_states as state
  where state.run_id = run.run_id
) as step
cross join lateral (
  select
    count(*) as tasks_total,
    count(*) filter (where task.status = 'queued') as tasks_queued,
    count(*) filter (where task.status = 'started') as tasks_started,
    count(*) filter (where task.status = 'completed') as tasks_completed,
    count(*) filter (where task.status = 'failed') as tasks_failed,
    count(*) filter (where task.attempts_count > 1) as tasks_retried
  from pgflow.step_tasks as task
  where task.run_id = run.run_id
) as task;

comment on view pgflow.run_progress is 'One row a run: how far it has come.';
comment on column pgflow.run_progress.ended_at is 'Null while the run goes on.';
comment on column pgflow.run_progress.duration is 'Until it ended, or until now.';
comment on column pgflow.run_progress.steps_waiting is 'Steps that wait for a dependency.';
comment on column pgflow.run_progress.tasks_total is
'Tasks that exist so far; steps that have not started have none yet.';
comment on column pgflow.run_progress.tasks_retried is 'Tasks that were started more than once.';
comment on column pgflow.run_progress.waits_for is
'The steps whose tasks the run waits for, in the order in which they started; null when it has ended.';

create function pgflow.status_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with run as (
    select run.*
    from pgflow.runs as run
    where only_flow is null or run.flow_slug = only_flow
  )
  select
    'active_task_of_ended_parent',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format('the task is %s, its step %s, its run %s', task.status, state.status, run.status)
  from pgflow.step_tasks as task
  inner join run on run.run_id = task.run_id
  inner join pgflow.step_states as state
    on state.run_id = task.run_id
    and state.step_slug = task.step_slug
  where pgflow.task_is_active(task.status)
    and (run.status <> 'started' or state.status <> 'started')
  union all
  select
    'unfinished_task_of_completed_step',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format('the step is completed, the task is %s', task.status)
  from pgflow.step_tasks as task
  inner join run on run.run_id = task.run_id
  inner join pgflow.step_states as state
    on state.run_id = task.run_id
    and state.step_slug = task.step_slug
  where state.status = 'completed'
    and task.status not in ('completed', 'queued', 'started')
  union all
  select
    'open_step_of_completed_run',
    format('step "%s" of run %s', state.step_slug, state.run_id),
    format('the run is completed, the step is %s', state.status)
  from run
  inner join pgflow.step_states as state on state.run_id = run.run_id
  where run.status = 'completed'
    and state.status not in ('completed', 'skipped')
  union all
  select
    'ready_step_not_started',
    format('step "%s" of run %s', state.step_slug, state.run_id),
    'the step waits for no dependency any more and was neither started nor ended'
  from run
  inner join pgflow.step_states as state on state.run_id = run.run_id
  where run.status = 'started'
    and state.status = 'created'
    and state.remaining_deps = 0
  union all
  select
    'run_cannot_move',
    format('run %s', run.run_id),
    'the run is started and has no active task whose result could move it'
  from run
  where run.status = 'started'
    and not exists (
      select
      from pgflow.step_tasks as task
      where task.run_id = run.run_id
        and pgflow.task_is_active(task.status)
    );
$function$;

comment on function pgflow.status_faults(text) is
'Internal: statuses of runs, steps and tasks, of one flow or of all, that can''t go together, and runs in progress that nothing can move.';

create view pgflow.step_throughput as
select
  step.flow_slug,
  step.step_slug,
  task.started,
  task.completed,
  task.failed,
  task.retried,
  outcome.skipped,
  task.p50_duration,
  task.p95_duration,
  task.p50_wait,
  task.p95_wait
from pgflow.steps as step
cross join lateral (
  select
    count(*) filter (where task.attempts_count > 0) as started,
    count(*) filter (where task.status = 'completed') as completed,
    count(*) filter (where task.status = 'failed') as failed,
    coalesce(sum(task.attempts_count - 1) filter (where task.attempts_count > 1), 0) as retried,
    percentile_cont(0.5) within group (order by task.completed_at - task.started_at) as p50_duration,
    percentile_cont(0.95) within group (order by task.completed_at - task.started_at) as p95_duration,
    percentile_cont(0.5) within group (order by task.started_at - task.queued_at)
    filter (where task.attempts_count = 1) as p50_wait,
    percentile_cont(0.95) within group (order by task.started_at - task.queued_at)
    filter (where task.attempts_count = 1) as p95_wait
  from pgflow.step_states as state
  inner join pgflow.step_tasks as task
    on task.run_id = state.run_id
    and task.step_slug = state.step_slug
  where state.flow_slug = step.flow_slug
    and state.step_slug = step.step_slug
) as task
cross join lateral (
  select count(*) filter (where state.status = 'skipped') as skipped
  from pgflow.step_states as state
  where state.flow_slug = step.flow_slug
    and state.step_slug = step.step_slug
) as outcome;

comment on view pgflow.step_throughput is
'One row a step: what its tasks did, over all runs that have not been pruned, and how long they took.';
comment on column pgflow.step_throughput.started is 'Tasks that were claimed at least once.';
comment on column pgflow.step_throughput.retried is 'Attempts beyond the first of each task.';
comment on column pgflow.step_throughput.skipped is 'Runs in which the step was skipped.';
comment on column pgflow.step_throughput.p50_duration is
'Median time from claim to completion of the attempt that completed.';
comment on column pgflow.step_throughput.p50_wait is
'Median time between queueing and claim, a start delay included, of tasks that were claimed once: later attempts wait for their retry.';

create view pgflow.stuck_work as
select
  'no live worker' as kind,
  gap.flow_slug,
  gap.step_slug,
  gap.queue_name,
  null::uuid as run_id,
  null::int as task_index,
  null::bigint as msg_id,
  gap.oldest_message_age as age,
  gap.reason
from pgflow.unserved_queues as gap
union all
select
  'waiting too long' as kind,
  queue.flow_slug,
  queue.step_slug,
  queue.queue_name,
  null::uuid as run_id,
  null::int as task_index,
  null::bigint as msg_id,
  clock_timestamp() - depth.visible_since as age,
  format(
    '%s messages could be claimed, one of them for more than an hour; live workers that serve this queue: %s',
    depth.messages_visible,
    pool.live_workers
  ) as reason
from pgflow.queue_depths() as depth
inner join pgflow.queues as queue on queue.queue_name = depth.queue_name
cross join lateral (
  select count(*) as live_workers
  from pgflow.queue_workers as worker
  where worker.queue_name = depth.queue_name
    and worker.is_serving
) as pool
where depth.visible_since < clock_timestamp() - interval '1 hour'
  and pool.live_workers > 0
union all
select
  fault.kind,
  fault.flow_slug,
  fault.step_slug,
  fault.queue_name,
  fault.run_id,
  fault.task_index,
  fault.msg_id,
  clock_timestamp() - fault.since as age,
  fault.detail as reason
from pgflow.message_faults() as fault
union all
select
  'stalled' as kind,
  task.flow_slug,
  task.step_slug,
  task.queue_name,
  task.run_id,
  task.task_index,
  null::bigint as msg_id,
  clock_timestamp() - task.recovery_boundary as age,
  format(
    'attempt %s of %s is past its recovery boundary; pgflow.requeue_stalled_tasks() %s',
    task.attempts_count,
    task.max_attempts,
    case when task.may_start_again then 'queues it again' else 'fails it' end
  ) as reason
from pgflow.stalled_tasks as task
union all
select
  'permanently stalled' as kind,
  task.flow_slug,
  task.step_slug,
  task.queue_name,
  task.run_id,
  task.task_index,
  task.message_id,
  clock_timestamp() - task.permanently_stalled_at as age,
  format('its last allowed attempt, number %s, was lost with its worker', task.attempts_count) as reason
from pgflow.step_tasks as task
where task.permanently_stalled_at is not null;

comment on view pgflow.stuck_work is
'What an operator must look at: queues with waiting work and no live worker, queues where work could be claimed for an hour although a worker is there, active tasks without a message, messages without an active task or hidden far longer than their step asks for, tasks past their recovery boundary, and tasks whose last attempt was lost with its worker. Reads the queues and all tasks, so it is for people and alerts, not for a tight loop.';
comment on column pgflow.stuck_work.kind is
'no live worker, waiting too long, task without a message, message without a task, message hidden too long, stalled or permanently stalled.';
comment on column pgflow.stuck_work.step_slug is 'Null: any step of a flow-mode flow.';
comment on column pgflow.stuck_work.age is
'How long it has been so: since the oldest message was sent, the first one became visible, the task was started or queued, the message was sent, the recovery boundary passed, or the task was given up.';

create function pgflow.time_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select
    'time_of_status',
    item.subject,
    format(
      'its status is %s; times are set for: %s',
      item.status,
      coalesce(nullif(array_to_string(item.set_for, ', '), ''), 'nothing')
    )
  from (
    select
      format('run %s', run.run_id) as subject,
      run.status,
      array[
        case when run.completed_at is not null then 'completed' end,
        case when run.failed_at is not null then 'failed' end
      ] as set_for
    from pgflow.runs as run
    where only_flow is null or run.flow_slug = only_flow
    union all
    select
      format('step "%s" of run %s', state.step_slug, state.run_id),
      state.status,
      array[
        case when state.completed_at is not null then 'completed' end,
        case when state.failed_at is not null then 'failed' end,
        case when state.skipped_at is not null then 'skipped' end
      ]
    from pgflow.step_states as state
    where only_flow is null or state.flow_slug = only_flow
    union all
    select
      format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
      task.status,
      array[
        case when task.completed_at is not null then 'completed' end,
        case when task.failed_at is not null then 'failed' end,
        case when task.skipped_at is not null then 'skipped' end,
        case when task.cancelled_at is not null then 'cancelled' end
      ]
    from pgflow.step_tasks as task
    where only_flow is null or task.flow_slug = only_flow
  ) as item
  -- Exactly the time of its own terminal status, and none while it is not terminal.
  where array_remove(item.set_for, null) <> case
    when item.status in ('created', 'queued', 'started') then '{}'::text[]
    else array[item.status]
  end
  union all
  select
    'start_of_task',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format(
      'the task is %s after %s attempts, and was started at: %s',
      task.status, task.attempts_count, coalesce(task.started_at::text, 'no time')
    )
  from pgflow.step_tasks as task
  where (only_flow is null or task.flow_slug = only_flow)
    and (
      (task.status = 'started' and (task.started_at is null or task.attempts_count = 0))
      or (task.status = 'queued' and task.started_at is not null)
    )
  union all
  select
    'time_order',
    item.subject,
    format('%s at %s comes before %s at %s', item.later, item.later_at, item.earlier, item.earlier_at)
  from (
    select
      format('run %s', run.run_id) as subject,
      'start' as earlier,
      run.started_at as earlier_at,
      'end' as later,
      coalesce(run.completed_at, run.failed_at) as later_at
    from pgflow.runs as run
    where only_flow is null or run.flow_slug = only_flow
    union all
    select
      format('step "%s" of run %s', state.step_slug, state.run_id),
      times.earlier,
      times.earlier_at,
      times.later,
      times.later_at
    from pgflow.step_states as state
    cross join lateral (
      select coalesce(state.completed_at, state.failed_at, state.skipped_at) as at
    ) as ended
    cross join lateral (
      values
      ('creation', state.created_at, 'start', state.started_at),
      ('creation', state.created_at, 'end', ended.at),
      ('start', state.started_at, 'end', ended.at)
    ) as times (earlier, earlier_at, later, later_at)
    where only_flow is null or state.flow_slug = only_flow
    union all
    select
      format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
      times.earlier,
      times.earlier_at,
      times.later,
      times.later_at
    from pgflow.step_tasks as task
    cross join lateral (
      select coalesce(task.completed_at, task.failed_at, task.skipped_at, task.cancelled_at) as at
    ) as ended
    cross join lateral (
      values
      ('queueing', task.queued_at, 'start', task.started_at),
      ('queueing', task.queued_at, 'end', ended.at),
      ('start', task.started_at, 'end', ended.at)
    ) as times (earlier, earlier_at, later, later_at)
    where only_flow is null or task.flow_slug = only_flow
  ) as item
  where item.later_at < item.earlier_at;
$function$;

comment on function pgflow.time_faults(text) is
'Internal: runs, steps and tasks, of one flow or of all, whose times don''t fit their status or each other.';

-- Functions are executable by everybody unless this is said; the rest is said so that it stays true whatever the
-- default privileges of the database are.
revoke all on schema pgflow from public;
revoke all on all tables in schema pgflow from public;
revoke all on all sequences in schema pgflow from public;
revoke all on all routines in schema pgflow from public;
