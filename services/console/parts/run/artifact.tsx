import { useSignal } from '@preact/signals'
import type { ArtifactBlock } from '../../../../shared/client/view/run-view.ts'
import { download } from '../../api/download.ts'
import { bytes } from '../../base/format.ts'
import { Line } from '../foreign.tsx'
import { Icon } from '../icon.tsx'

/** A file that the run has delivered, to be saved. */
export function Artifact({ file }: { file: Pick<ArtifactBlock, 'file_id' | 'name' | 'bytes' | 'title'> }) {
  const problem = useSignal<string | undefined>(undefined)
  const save = () => {
    problem.value = undefined
    download(`/files/${file.file_id}/content`, file.name).catch((cause: unknown) => {
      problem.value = cause instanceof Error ? cause.message : String(cause)
    })
  }
  return (
    <div class="artifact">
      <button type="button" class="button" aria-label={`Download ${file.name}`} onClick={save}>
        <Icon name="down" />
        <Line text={file.name} />
        <span class="small soft number">{bytes(file.bytes)}</span>
      </button>
      {file.title !== undefined && <Line text={file.title} />}
      {problem.value !== undefined && <p class="problem">{problem.value}</p>}
    </div>
  )
}
