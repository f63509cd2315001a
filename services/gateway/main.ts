import { runProcess } from '../wiring/process.ts'
import { openGatewayMember } from './member.ts'

await runProcess('cluster', openGatewayMember)
