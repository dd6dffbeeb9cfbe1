-- Every ordered pair of what a message can be, in a batch of its own: 15 x 15 batches.
begin;
\ir helpers.psql
-- Each batch with unsupported work sends its warning.
set local client_min_messages to error;

select plan(8);

select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.compile('g', 'step', jsonb_build_array(pg_temp.step('a')));

create table pg_temp.kinds (
  kind text primary key,
  outcome text not null,
  whereabouts text not null,
  attempts int not null
);

insert into pg_temp.kinds (kind, outcome, whereabouts, attempts)
values
('queued', 'claimed', 'hidden', 1),
('queued for a retry', 'claimed', 'hidden', 2),
('started', 'deferred', 'hidden', 1),
('completed', 'archived', 'archived', 1),
('completed, its message archived already', 'archived', 'archived', 1),
('failed', 'archived', 'archived', 1),
('skipped', 'archived', 'archived', 0),
('cancelled', 'archived', 'archived', 0),
('queued under a skipped step', 'archived', 'archived', 0),
('started under a failed run', 'archived', 'archived', 1),
('without message or task', 'gone', 'gone', 0),
('queued, its message lost', 'gone', 'gone', 0),
('junk', 'unsupported', 'visible', 0),
('of another step', 'unsupported', 'visible', 0),
('of another flow', 'unsupported', 'visible', 0);

-- Makes a fresh message of a kind on the queue of step a and returns its id.
create function pg_temp.make(kind text, run_name text)
returns bigint
language plpgsql
as $$
declare
  id bigint;
begin
  if kind = 'without message or task' then
    return 1000000 + (random() * 1000000)::int;
  elsif kind = 'junk' then
    return pgmq.send('f__a', '{"secret": "body"}');
  end if;

  if kind = 'of another flow' then
    perform pg_temp.start('g', run_name);
  else
    perform pg_temp.start('f', run_name);
  end if;

  if kind in ('of another step', 'of another flow') then
    id := pgmq.send('f__a', '{}');
    delete from pgflow.step_tasks where run_id = pg_temp.id(run_name);
    insert into pgflow.step_tasks (flow_slug, run_id, step_slug, message_id, queue_name)
    select state.flow_slug, state.run_id, state.step_slug, id, 'f__a'
    from pgflow.step_states as state
    where state.run_id = pg_temp.id(run_name)
      and state.step_slug = case when kind = 'of another step' then 'b' else 'a' end;
    return id;
  end if;

  id := pg_temp.msg(run_name, 'a');

  if kind in ('started', 'queued for a retry', 'started under a failed run', 'failed')
    or kind like 'completed%' then
    perform pg_temp.claim_messages('f', 'a', array[id]);
  end if;

  case kind
    when 'queued for a retry' then
      perform pgflow.fail_task(pg_temp.id(run_name), 'a', 0, 'broken');
    when 'completed', 'completed, its message archived already' then
      perform pgflow.complete_task(pg_temp.id(run_name), 'a', 0, '{}');
      if kind = 'completed' then
        perform pg_temp.put_back('f__a', id);
      end if;
    when 'failed' then
      update pgflow.step_tasks set status = 'failed', failed_at = now() where message_id = id and queue_name = 'f__a';
    when 'skipped' then
      update pgflow.step_tasks set status = 'skipped', skipped_at = now() where message_id = id and queue_name = 'f__a';
    when 'cancelled' then
      update pgflow.step_tasks set status = 'cancelled', cancelled_at = now() where message_id = id and queue_name = 'f__a';
    when 'queued under a skipped step' then
      update pgflow.step_states set status = 'skipped', skip_reason = 'condition_unmet'
      where run_id = pg_temp.id(run_name) and step_slug = 'a';
    when 'started under a failed run' then
      update pgflow.runs set status = 'failed', failed_at = now() where run_id = pg_temp.id(run_name);
    when 'queued, its message lost' then
      perform pg_temp.lose_message('f__a', id);
    else
      null;
  end case;

  update pgmq.q_f__a set vt = clock_timestamp() where msg_id = id;
  return id;
end
$$;

create table pg_temp.observed (
  first_kind text,
  second_kind text,
  outcomes text,
  whereabouts text,
  attempts text,
  wrong_columns bigint,
  reasons_missing bigint,
  is_enabled boolean,
  has_stop_reason boolean
);

do $$
declare
  pair record;
  first_id bigint;
  second_id bigint;
  batch pgflow.claim_outcome[];
begin
  for pair in
    select first.kind as first_kind, second.kind as second_kind, row_number() over () as number
    from pg_temp.kinds as first
    cross join pg_temp.kinds as second
  loop
    first_id := pg_temp.make(pair.first_kind, pair.number || ' first');
    second_id := pg_temp.make(pair.second_kind, pair.number || ' second');

    -- In two statements, so that what is looked at is what the claim left.
    batch := array(select claimed from pg_temp.claim_messages('f', 'a', array[first_id, second_id]) as claimed);

    insert into pg_temp.observed
    select
      pair.first_kind,
      pair.second_kind,
      (
        select string_agg(claimed.outcome, ', ' order by claimed.position)
        from unnest(batch) with ordinality
          as claimed (msg_id, outcome, reason, flow_slug, run_id, step_slug, task_index, attempt, input, flow_input, position)
        where claimed.msg_id = case when claimed.position = 1 then first_id else second_id end
      ),
      pg_temp.whereabouts('f__a', first_id) || ', ' || pg_temp.whereabouts('f__a', second_id),
      (
        select string_agg(coalesce(task.attempts_count, 0)::text, ', ' order by asked.position)
        from unnest(array[first_id, second_id]) with ordinality as asked (msg_id, position)
        left join pgflow.step_tasks as task
          on task.queue_name = 'f__a'
          and task.message_id = asked.msg_id
      ),
      (
        select count(*)
        from unnest(batch) as claimed
        where (claimed.outcome = 'claimed')
          is distinct from (
            num_nulls(claimed.flow_slug, claimed.run_id, claimed.step_slug, claimed.task_index, claimed.attempt, claimed.input) = 0
          )
          or (
            claimed.outcome <> 'claimed'
            and num_nonnulls(
              claimed.flow_slug, claimed.run_id, claimed.step_slug, claimed.task_index, claimed.attempt, claimed.input,
              claimed.flow_input
            ) > 0
          )
      ),
      (select count(*) from unnest(batch) as claimed where claimed.outcome <> 'claimed' and coalesce(claimed.reason, '') = ''),
      function.enabled,
      worker.stop_reason is not null
    from pgflow.worker_functions as function
    inner join pgflow.workers as worker on worker.function_name = function.function_name
    where function.function_name = 'f_a';

    perform pg_temp.enable('f', 'a');
  end loop;
end
$$;

-- What the table of the contract says about each pair.
create view pg_temp.expected as
select
  first.kind as first_kind,
  second.kind as second_kind,
  'unsupported' in (first.outcome, second.outcome) as is_fatal,
  first,
  second
from pg_temp.kinds as first
cross join pg_temp.kinds as second;

-- Where a message is before the claim, and how many attempts its task has had.
create function pg_temp.before(kind pg_temp.kinds)
returns text
language sql
as $$
  select case when kind.whereabouts = 'gone' or kind.kind like '%archived already' then kind.whereabouts else 'visible' end
$$;

select is((select count(*) from pg_temp.observed), 225::bigint, '225 batches were claimed');

select results_eq(
  'select first_kind, second_kind, outcomes from pg_temp.observed order by 1, 2',
  $$
    select
      first_kind,
      second_kind,
      case
        when is_fatal then concat_ws(
          ', ',
          case when (first).outcome = 'unsupported' then 'unsupported' else 'released' end,
          case when (second).outcome = 'unsupported' then 'unsupported' else 'released' end
        )
        else (first).outcome || ', ' || (second).outcome
      end
    from pg_temp.expected
    order by 1, 2
  $$,
  'one row an id, in the order passed, as the table says; with unsupported work the rest is released'
);

select results_eq(
  'select first_kind, second_kind, whereabouts from pg_temp.observed order by 1, 2',
  $$
    select
      first_kind,
      second_kind,
      case
        when is_fatal then
          case when first_kind = 'completed' then 'visible and archived' else pg_temp.before(first) end
          || ', '
          || case when second_kind = 'completed' then 'visible and archived' else pg_temp.before(second) end
        else (first).whereabouts || ', ' || (second).whereabouts
      end
    from pg_temp.expected
    order by 1, 2
  $$,
  'messages are hidden, archived once or, after a fatal batch, all visible and none archived'
);

select results_eq(
  'select first_kind, second_kind, attempts from pg_temp.observed order by 1, 2',
  $$
    select
      first_kind,
      second_kind,
      (first).attempts - (is_fatal and (first).outcome = 'claimed')::int
      || ', '
      || (second).attempts - (is_fatal and (second).outcome = 'claimed')::int
    from pg_temp.expected
    order by 1, 2
  $$,
  'a claim is one attempt; nothing else is one'
);

select results_eq(
  'select first_kind, second_kind, is_enabled, has_stop_reason from pg_temp.observed order by 1, 2',
  'select first_kind, second_kind, not is_fatal, is_fatal from pg_temp.expected order by 1, 2',
  'the function is disabled and the worker told to stop exactly by unsupported work'
);

select is_empty(
  'select first_kind, second_kind, wrong_columns from pg_temp.observed where wrong_columns > 0',
  'the columns of the task are there exactly for claimed ids'
);

select is_empty(
  'select first_kind, second_kind, reasons_missing from pg_temp.observed where reasons_missing > 0',
  'every other outcome has a reason'
);

select is_empty(
  $$
    select task.run_id, task.status
    from pgflow.step_tasks as task
    inner join pgflow.runs as run on run.run_id = task.run_id
    inner join pgflow.step_states as state
      on state.run_id = task.run_id
      and state.step_slug = task.step_slug
    where task.status in ('queued', 'started')
      and task.queue_name = 'f__a'
      and (run.status, state.status) <> ('started', 'started')
      and not pg_temp.vt('f__a', task.message_id) <= clock_timestamp()
  $$,
  'a task that was active under an ended step or run is ended with its message'
);

select *
from finish();
rollback;
