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
  new_names text[];
  queue_to_make text;
  made_at timestamptz;
  stranger pgflow.queues;
begin
  -- PGMQ's own lock, held to the end of the transaction: nobody can make one of these queues between the check and us.
  perform pgmq.acquire_queue_lock(wanted.queue_name)
  from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted;

  perform pgflow.check_queues(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs);

  with inserted as (
    insert into pgflow.queues (queue_name, flow_slug, step_slug, physical_created_at)
    select wanted.queue_name, own_queues.flow_slug, wanted.step_slug, transaction_timestamp()
    from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted
    order by wanted.queue_name collate "C"
    on conflict do nothing
    returning queues.queue_name
  )
  select array_agg(inserted.queue_name order by inserted.queue_name collate "C")
  into new_names
  from inserted;

  -- A row that did not come has an owner who was not there yet when we checked.
  select owner.*
  into stranger
  from pgflow.queues_to_own(own_queues.flow_slug, own_queues.queue_mode, own_queues.step_slugs) as wanted
  inner join pgflow.queues as owner
    on owner.queue_name = wanted.queue_name
  where (owner.flow_slug, owner.step_slug) is distinct from (own_queues.flow_slug, wanted.step_slug)
  order by owner.queue_name collate "C"
  limit 1;

  if found then
    raise exception using
      errcode = 'PF005',
      message = format(
        'Queue "%s", which flow "%s" needs, belongs to %s.',
        stranger.queue_name,
        own_queues.flow_slug,
        pgflow.queue_owner(stranger)
      ),
      detail = format('A queue has one owner; this one''s is %s.', pgflow.queue_owner(stranger)),
      hint = 'Use another flow slug, or delete the flow that owns the queue.';
  end if;

  foreach queue_to_make in array coalesce(new_names, '{}')
  loop
    made_at := pgflow.make_queue(queue_to_make, own_queues.highest_id);

    update pgflow.queues as owner
    set physical_created_at = made_at
    where owner.queue_name = queue_to_make
      and owner.physical_created_at <> made_at;
  end loop;
end
$function$;

comment on function pgflow.own_queues(text, text, text[], bigint) is
'Internal: takes the queues of a complete flow: checks them, writes their owner rows in name order and makes them, with message ids above highest_id. Raises what check_queues() raises, PF005 also for an owner who came in between.';
