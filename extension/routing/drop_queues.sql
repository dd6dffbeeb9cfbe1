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
