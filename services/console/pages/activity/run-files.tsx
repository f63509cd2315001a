import type { Schema } from '../../../../shared/client/api.ts'
import { has } from '../../api/caller.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Artifact } from '../../parts/run/artifact.tsx'
import { WorkspaceFiles } from '../../parts/run/workspace-files.tsx'

type Run = Schema<'Run'>

/** The files of a run: the files of its prompt, the files that it has delivered, and the changed files in its folder. */
export function RunFiles({ run }: { run: Run }) {
  const { run_id: id, kind, attachments = [], artifacts = [] } = run
  const hasFolder = kind !== 'flow' && kind !== 'plan'
  if (!hasFolder && attachments.length + artifacts.length === 0) return null
  return (
    <section class="card" aria-label="Files">
      <header>
        <h2 class="grow">Files</h2>
        {hasFolder && <CopyAs method="GET" path={`/runs/${id}/files`} />}
      </header>
      <div class="run-files">
        {attachments.length > 0 && <Kept title="Sent with the prompt" files={attachments} />}
        {artifacts.length > 0 && <Kept title="Delivered" files={artifacts} />}
        {hasFolder && (
          <>
            <h3>Changed in its folder</h3>
            <WorkspaceFiles
              path={`/runs/${encodeURIComponent(id)}/files`}
              nothing="It has changed no file that is still there."
              concerns={({ data }) => data['run_id'] === id}
            />
          </>
        )}
      </div>
    </section>
  )
}

/** Where the server keeps no files any more, their names are left. */
const Kept = ({ title, files }: { title: string; files: readonly Schema<'AttachedFile'>[] }) => (
  <>
    <h3>{title}</h3>
    {files.map((file) =>
      has('files') ? <Artifact key={file.file_id} file={file} /> : <p key={file.file_id}>{file.name}</p>,
    )}
  </>
)
