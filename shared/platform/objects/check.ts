import { newToken } from '../../kernel/ids.ts'
import { contentOf } from './content.ts'
import type { Objects } from './port.ts'

/**
 * Writes an object and deletes it. Returns whether the store obeys the conditions of writes: without them a process that was assumed
 * to be dead could overwrite newer data of another process. Throws `unavailable`.
 */
export async function keepsConditions(objects: Pick<Objects, 'write' | 'delete'>): Promise<boolean> {
  const key = `check/${newToken()}`
  const first = await objects.write(key, contentOf('one'))
  try {
    const isAbsentKept = (await objects.write(key, contentOf('two'), 'absent')) === undefined
    const isTagKept = (await objects.write(key, contentOf('three'), { tag: '"0"' })) === undefined
    return first !== undefined && isAbsentKept && isTagKept
  } finally {
    await objects.delete(key)
  }
}
