import { renameSync, symlinkSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Runs `work`. Right before its first `call` of `node:fs/promises` with a path below `folder`, swaps the folder for a symbolic
 * link to `target`, as an attacker does who wins the race between a check and the use of the path.
 */
export async function swapBefore<T>(
  { call, folder, target }: { call: 'open' | 'rename'; folder: string; target: string },
  work: () => Promise<T>,
): Promise<T> {
  const original = fs[call] as (...args: unknown[]) => Promise<unknown>
  let isSwapped = false
  const swapping = (...args: unknown[]) => {
    if (!isSwapped && String(args[0]).startsWith(`${folder}/`)) {
      isSwapped = true
      renameSync(folder, `${folder}.real`)
      symlinkSync(target, folder)
    }
    return original(...args)
  }
  Object.assign(fs, { [call]: swapping })
  syncBuiltinESMExports()
  try {
    const result = await work()
    if (!isSwapped) throw new Error(`${call} was not called below ${folder}`)
    return result
  } finally {
    Object.assign(fs, { [call]: original })
    syncBuiltinESMExports()
  }
}
