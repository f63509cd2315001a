import { runProcess } from '../wiring/process.ts'
import { openExecutorMember } from './member.ts'

await runProcess('cluster', openExecutorMember)
