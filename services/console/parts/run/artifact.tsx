import { useSignal } from '@preact/signals'
import type { ArtifactBlock } from '../../../../shared/client/view/run-view.ts'
import { contentOf, download } from '../../api/download.ts'
import { bytes } from '../../base/format.ts'
import { Line } from '../foreign.tsx'
import { Icon } from '../icon.tsx'
import { isPicture, Thumbnail } from './thumbnail.tsx'

type ArtifactProps = {
  file: Pick<ArtifactBlock, 'file_id' | 'name' | 'media_type' | 'bytes' | 'title'> & { source?: Blob }
}

/** A file of the tenant with a button to save it: a person has sent it, or a run has delivered it. Pictures are shown. */
export function Artifact({ file }: ArtifactProps) {
  const { name, title, source } = file
  const path = `/files/${file.file_id}/content`
  return (
    <div class="artifact">
      {isPicture(file) && <Thumbnail name={name} load={async () => source ?? contentOf(path)} />}
      <SaveButton path={path} name={name} size={file.bytes} />
      {title !== undefined && <Line text={title} />}
    </div>
  )
}

/** A button that saves the data of an API path. */
export function SaveButton({ path, name, size }: { path: string; name: string; size: number }) {
  const problem = useSignal<string | undefined>(undefined)
  const save = () => {
    problem.value = undefined
    download(path, name.slice(name.lastIndexOf('/') + 1)).catch((cause: unknown) => {
      problem.value = cause instanceof Error ? cause.message : String(cause)
    })
  }
  return (
    <>
      <button type="button" class="button" onClick={save}>
        <Icon name="down" />
        <span class="visually-hidden">Download </span>
        <span class="cut">
          <Line text={name} />
        </span>
        <span class="small soft number">{bytes(size)}</span>
      </button>
      {problem.value !== undefined && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </>
  )
}
