import { tellFailure } from '../../../base/announce.ts'
import type { FlowFile } from './flow-file.ts'

/** Reads a flow from a file that the person chooses. The YAML reader is loaded only then. */
export function ImportButton({ label, onRead }: { label: string; onRead(flow: FlowFile): void }) {
  const read = async (field: HTMLInputElement) => {
    const file = field.files?.[0]
    if (!file) return
    const { readFlowFile } = await import('./flow-file.ts')
    onRead(await readFlowFile(file))
  }
  return (
    <label class="button file-button">
      {label}
      <input
        class="visually-hidden"
        type="file"
        accept=".yaml,.yml,.json"
        onChange={({ currentTarget: field }) => {
          void read(field)
            .catch(tellFailure)
            // The same file can be chosen again once it is mended.
            .finally(() => (field.value = ''))
        }}
      />
    </label>
  )
}
