import type { Request, RequestHandler } from 'express'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { tenantOf } from '../../middleware/auth.ts'
import type { DialectDeps } from '../dialect.ts'
import { listPublished, type PublishedFlow } from '../shared/published-flows.ts'

/** The version of the protocol, as its header and the card name it. */
export const PROTOCOL_VERSION = '1.0'

/** The agent card. It needs the same token as every other path: the operator gives a client its address and the token. */
export const showCard =
  ({ basePath, version, authentication, flows, plans }: DialectDeps): RequestHandler =>
  async (req, res) => {
    const published = flows ? (await listPublished(flows.library, tenantOf(res), { limit: MAX_SKILLS })).flows : []
    res.json({
      name: 'agent-engine',
      description:
        'Runs agents with tools. A task is the answer to one message of a conversation, the run of a flow that `metadata.flow` of the message names, or a plan in `metadata.plan`.',
      version,
      supportedInterfaces: [
        {
          url: `${originOf(req)}${basePath}/a2a`,
          protocolBinding: 'JSONRPC',
          protocolVersion: PROTOCOL_VERSION,
          tenant: '',
        },
      ],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
      defaultInputModes: MODES,
      defaultOutputModes: MODES,
      skills: [CONVERSATION, ...(plans ? [PLAN] : []), ...published.map(skillOf)],
      signatures: [],
      ...(authentication === 'none' ? { securitySchemes: {}, securityRequirements: [] } : SECURITY),
    } satisfies JsonObject)
  }

/** The origin under which the client reached this server; behind a proxy TRUST_PROXY decides which headers count. */
const originOf = (req: Request): string => `${req.protocol}://${req.get('host')}`

const MODES = ['text/plain', 'application/json']

const CONVERSATION = {
  id: 'conversation',
  name: 'Conversation',
  description: 'Answers a message, with the tools of this server. Where a tool needs permission the task waits for it.',
  tags: ['agent', 'tools'],
  examples: ['Which files changed today?'],
  inputModes: MODES,
  outputModes: MODES,
  securityRequirements: [],
}

/** No flow can have this id as its name. */
const PLAN = {
  id: 'agent-engine.plan',
  name: 'Plan',
  description:
    'Carries out steps that depend on one another. `metadata.plan` of a message is the plan, `{"steps": [{"id", "prompt", "depends_on"}], "parallel", "title"}`, or `true` where the first data of the message is the plan. Each step that is done is an artifact.',
  tags: ['plan'],
  examples: [],
  inputModes: ['application/json'],
  outputModes: ['text/plain'],
  securityRequirements: [],
}

const MAX_SKILLS = 200

/** A message calls a flow by its name, in `metadata.flow`. */
const skillOf = ({ name, description }: PublishedFlow) => ({
  ...{ id: name, name, description, tags: ['flow'], examples: [] },
  ...{ inputModes: ['application/json'], outputModes: ['application/json'], securityRequirements: [] },
})

const SECURITY = {
  securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', description: '', bearerFormat: '' } } },
  securityRequirements: [{ schemes: { bearer: { list: [] } } }],
}
