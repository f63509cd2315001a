import { expect } from 'chai'
import { AppError } from '../../../../shared/kernel/errors.ts'
import {
  EMPTY_CONFIG,
  type StoredInstance,
  type TenantConfig,
} from '../../../../shared/tenancy/tenant-config/config.ts'
import { checkInput, routesOf } from '../../../../shared/work/flows/calls/start-execution.ts'
import type { FlowDefinition } from '../../../../shared/work/flows/port.ts'

const instance = (name: string, type: StoredInstance['type']): StoredInstance => ({
  name,
  type,
  revision: 'rev_1',
  created_at: '',
  updated_at: '',
})

const CONFIG: TenantConfig = {
  ...EMPTY_CONFIG,
  instances: [instance('fast', 'openai'), instance('eu', 'anthropic'), instance('us', 'anthropic')],
}

const DEFINITION: FlowDefinition = { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: false }

const subAgent = (provider_instance: string) => ({
  name: 'facts',
  prompt: 'Facts.',
  output_schema: {},
  tools: [],
  provider_instance,
})

function refusalOf(work: () => unknown): AppError {
  try {
    work()
  } catch (cause) {
    if (cause instanceof AppError) return cause
    throw cause
  }
  throw new Error('it was not refused')
}

describe('the instances and models of a flow call', () => {
  it('are the named instance and the model of the request, before the one of the flow', () => {
    const request = { provider_instance: 'fast', model: 'm2' }
    expect(routesOf({ ...DEFINITION, model: 'm1' }, request, CONFIG).primary).to.deep.equal({
      instance: 'fast',
      model: 'm2',
    })
    expect(routesOf({ ...DEFINITION, model: 'm1' }, { provider_instance: 'fast' }, CONFIG)).to.deep.equal({
      primary: { instance: 'fast', model: 'm1' },
      fallback: null,
    })
  })

  it('take a bare type where the tenant has one instance of it, and are given by the name of the instance', () => {
    expect(routesOf(DEFINITION, { provider_instance: 'openai', model: 'm' }, CONFIG).primary.instance).to.equal('fast')
  })

  const REFUSED: [string, object, string, RegExp][] = [
    [
      'an unknown instance',
      { provider_instance: 'nope', model: 'm' },
      '/provider_instance',
      /no instance is named nope/,
    ],
    [
      'a type with several instances',
      { provider_instance: 'anthropic', model: 'm' },
      '/provider_instance',
      /several instances/,
    ],
    ['no model at all', { provider_instance: 'fast' }, '/model', /send model/],
    [
      'a fallback without its model',
      { provider_instance: 'fast', model: 'm', fallback_instance: 'eu' },
      '/fallback_model',
      /together/,
    ],
    [
      'a fallback without its instance',
      { provider_instance: 'fast', model: 'm', fallback_model: 'x' },
      '/fallback_instance',
      /together/,
    ],
    [
      'a misspelled fallback',
      { provider_instance: 'fast', model: 'm', fallback_instance: 'ue', fallback_model: 'x' },
      '/fallback_instance',
      /no instance is named ue/,
    ],
  ]
  for (const [name, request, param, message] of REFUSED) {
    it(`refuse ${name}`, () => {
      const refusal = refusalOf(() => routesOf(DEFINITION, request as { provider_instance: string }, CONFIG))
      expect(refusal).to.include({ status: 400, param })
      expect(refusal.message).to.match(message)
    })
  }

  it('refuse a call without a model, and name the one of the route main where the tenant has that route', () => {
    const refused = (config: TenantConfig) =>
      refusalOf(() => routesOf(DEFINITION, { provider_instance: 'fast' }, config)).message
    expect(refused({ ...CONFIG, routing: { main: { instance: 'eu', model: 'm3' } } })).to.match(
      /send model, such as m3, which the route main runs on eu$/,
    )
    expect(refused({ ...CONFIG, routing: { compact: { instance: 'eu', model: 'm3' } } })).to.match(/send model$/)
  })

  it("refuse a sub-agent's unknown instance before anything is called", () => {
    const definition = { ...DEFINITION, sub_agents: [subAgent('eu'), subAgent('gone')] }
    const refusal = refusalOf(() => routesOf(definition, { provider_instance: 'fast', model: 'm' }, CONFIG))
    expect(refusal).to.include({ status: 400, param: '/sub_agents/1/provider_instance' })
  })
})

describe('the input of a flow call', () => {
  const checkerWith = (problems: { path: string; message: string }[]) => ({
    check: async () => problems,
    findUnusable: async () => [],
    close: async () => {},
  })

  it('is refused with the path of its first problem', async () => {
    const checker = checkerWith([{ path: '/ticket/id', message: 'ticket.id must be a string, not a number' }])
    const refusal = await checkInput(DEFINITION, { input: {} }, checker).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    expect(refusal).to.be.instanceOf(AppError)
    expect(refusal).to.include({ status: 400, param: '/input/ticket/id' })
    expect((refusal as AppError).message).to.contain('ticket.id must be a string')
  })

  it('passes when it has no problem', async () => {
    await checkInput(DEFINITION, { input: {} }, checkerWith([]))
  })
})
