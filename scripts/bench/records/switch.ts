import { RunRecorder } from '../../../shared/work/runs/records/recorder.ts'
import { RunWitness } from '../../../shared/work/runs/records/run-witness.ts'

// Node loads this module into a process of the product before the product (`--import`). Runs that begin after SIGUSR2 are not recorded, until the next one.

let isOn = true
process.on('SIGUSR2', () => {
  isOn = !isOn
})

const { begin } = RunRecorder.prototype
const { watch } = RunWitness.prototype
Object.assign(RunRecorder.prototype, {
  begin(this: RunRecorder, ...args: Parameters<RunRecorder['begin']>) {
    return isOn ? begin.apply(this, args) : undefined
  },
})
Object.assign(RunWitness.prototype, {
  watch(this: RunWitness, ...args: Parameters<RunWitness['watch']>) {
    if (isOn) watch.apply(this, args)
  },
})
