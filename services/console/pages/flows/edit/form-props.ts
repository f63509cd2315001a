import { type JsonObject, type Path, pointerOf } from '../../../base/json-value.ts'
import type { Problem } from '../../../parts/editor/json-editor.tsx'
import type { FlowDocument } from './flow-document.ts'

export type FormProps = { document: FlowDocument; value: JsonObject; problems: readonly Problem[] }

/** The first problem of a value, or of something in it. */
export function problemAt(problems: readonly Problem[], path: Path): string | undefined {
  const pointer = pointerOf(path)
  return problems.find(({ param }) => param === pointer || param.startsWith(`${pointer}/`))?.message
}
