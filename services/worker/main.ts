import { runProcess } from '../wiring/process.ts'
import { openWorkerMember } from './member.ts'

await runProcess('cluster', openWorkerMember)
