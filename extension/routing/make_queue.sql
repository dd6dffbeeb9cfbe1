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
