import { bytes } from '../../../base/format.ts'
import { Line } from '../../../parts/foreign.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { isPicture, Thumbnail } from '../../../parts/run/thumbnail.tsx'
import type { DraftFile, DraftFiles } from '../model/draft-files.ts'

/** The files of a message that is being written: their names, the upload progress, and why a file cannot be sent with it. */
export const DraftFileList = ({ files }: { files: DraftFiles }) => (
  <ul class="draft-files" aria-label="Files of the message">
    {files.list.value.map((file) => (
      <li key={file.key} class={file.problem === undefined ? 'draft-file' : 'draft-file failed'}>
        <Picture file={file} />
        <div class="grow">
          <div class="cut">
            <Line text={file.name} />
          </div>
          <State file={file} />
        </div>
        {file.problem !== undefined && !file.kept && file.source && (
          <button type="button" class="button" onClick={() => files.again(file)}>
            Try again <span class="visually-hidden">{file.name}</span>
          </button>
        )}
        <button
          type="button"
          class="button plain icon"
          aria-label={`Remove ${file.name}`}
          onClick={() => files.remove(file)}
        >
          <Icon name="cross" />
        </button>
      </li>
    ))}
  </ul>
)

function Picture({ file: { source, name, size } }: { file: DraftFile }) {
  if (!source || !isPicture({ media_type: source.type, bytes: size })) return <Icon name="copy" />
  return <Thumbnail name={name} load={async () => source} />
}

function State({ file: { problem, kept, size, share, name } }: { file: DraftFile }) {
  if (problem !== undefined)
    return (
      <div class="problem small" role="alert">
        <Line text={problem} />
      </div>
    )
  if (kept) return <div class="soft small number">{bytes(size)}</div>
  return <progress class="meter" max={1} value={share} aria-label={`${name}: part that is sent`} />
}
