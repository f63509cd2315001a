import { renameSync, symlinkSync, unlinkSync } from 'node:fs'

// Plays an attacker: swaps the folder argv[2] for a link to argv[3] and back until it is killed.
const [, , folder = '', target = ''] = process.argv
const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random())
process.stdout.write('flipping\n')
for (;;) {
  renameSync(folder, `${folder}.real`)
  symlinkSync(target, folder)
  wait()
  unlinkSync(folder)
  renameSync(`${folder}.real`, folder)
  wait()
}
