import type { Objects } from '../../../platform/objects/port.ts'
import type { Gate } from './gate.ts'

/** The manifests of all folders, by their names: `TENANT/SCOPE`, as `workspacePath` makes them. */
export const MANIFESTS = 'folders/'

export const manifestKey = (name: string): string => `${MANIFESTS}${name}`

export const filesPrefix = (name: string): string => `files/${name}/`

/** Deletes a folder's objects, the manifest last: without it nobody would find what is left. */
export async function removeKept(objects: Objects, name: string, gate: Gate): Promise<void> {
  if (!(await objects.has(manifestKey(name)))) return
  let keys: string[] = []
  const deleteAll = async () => {
    await gate.each(keys, (key) => objects.delete(key))
    keys = []
  }
  for await (const { key } of objects.list(filesPrefix(name))) if (keys.push(key) === BATCH) await deleteAll()
  await deleteAll()
  await objects.delete(manifestKey(name))
}

const BATCH = 1_000
