import type { Schema, TenantEvent } from '../../../../shared/client/api.ts'
import { isRefusal } from '../../../../shared/client/errors.ts'
import { useList } from '../../api/list.ts'
import { Loaded } from '../loading.tsx'
import { More } from '../more.tsx'
import { Ago } from '../time.tsx'
import { SaveButton } from './artifact.tsx'

type WorkspaceFilesProps = {
  /** The path of the list: the files of a session, or the files that a run has changed. */
  path: string
  /** What an empty list means. */
  nothing: string
  concerns(event: TenantEvent): boolean
}

/** The files of a workspace, each with a button to save it. */
export function WorkspaceFiles({ path, nothing, concerns }: WorkspaceFilesProps) {
  const list = useList<Schema<'WorkspaceFile'>>({ path, field: 'files', concerns })
  if (isRefusal(list.state.value.error, 404))
    return <p class="soft small">The folder is gone, as those of one-shot runs soon are. What was delivered stays.</p>
  return (
    <>
      <Loaded from={list}>
        {({ items, next }) =>
          items.length === 0 && next === undefined ? (
            <p class="soft small">{nothing}</p>
          ) : (
            <ul class="folder">
              {items.map(({ path: name, bytes: size, modified_at: at }) => (
                <li key={name} class="artifact">
                  <SaveButton path={`${path}/content?path=${encodeURIComponent(name)}`} name={name} size={size} />
                  <span class="soft small">
                    changed <Ago at={at} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <More list={list} />
    </>
  )
}
