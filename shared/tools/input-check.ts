import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonObject } from '../events.ts'
import type { Tool } from './port.ts'

export type InputCheck = {
  /** What is wrong with an input, in words for the model; throws when the tool's schema does not compile. */
  problemWith(tool: Tool, input: JsonObject): string | undefined
  /** Why the tool's schema cannot be used. */
  schemaProblem(tool: Tool): string | undefined
}

/** Checks inputs against their tools' schemas. A schema is compiled once, when its tool is first used. */
export function createInputCheck(): InputCheck {
  const compile = createCompiler()
  const compiled = new WeakMap<Tool, ValidateFunction>()
  const validatorOf = (tool: Tool): ValidateFunction => {
    const validate = compiled.get(tool) ?? compile(tool.inputSchema)
    compiled.set(tool, validate)
    return validate
  }
  return {
    problemWith(tool, input) {
      const validate = validatorOf(tool)
      return validate(input) ? undefined : `The input of ${tool.name} is wrong: ${inWords(validate.errors ?? [])}.`
    },
    schemaProblem(tool) {
      try {
        validatorOf(tool)({}) // A schema that only refers to itself compiles, and overflows the stack here.
        return undefined
      } catch (cause) {
        return cause instanceof Error ? cause.message : 'it does not compile'
      }
    },
  }
}

/** Draft 2020-12, or draft-07 for a schema that says so (many MCP servers do). */
function createCompiler(): (schema: JsonObject) => ValidateFunction {
  // The meta-schemas are not compiled (30 ms each); what is wrong with a schema shows when it is itself compiled.
  const options = { strict: false, validateSchema: false, meta: false, logger: false, validateFormats: false } as const
  let draft2020: Ajv2020 | undefined
  let draft07: Ajv | undefined
  return (inputSchema) => {
    // Without its id: two servers may use the same one.
    const schema = { ...inputSchema, $schema: undefined, $id: undefined }
    if (String(inputSchema['$schema']).includes('draft-07')) return (draft07 ??= new Ajv(options)).compile(schema)
    return (draft2020 ??= new Ajv2020(options)).compile(schema)
  }
}

/** The last error is the outermost: of an `anyOf`, that none fits. */
function inWords(errors: readonly ErrorObject[]): string {
  const error = errors.at(-1)
  if (!error) return 'it does not fit its schema'
  const { keyword, params, message = 'does not fit' } = error
  const place = error.instancePath.slice(1).replaceAll('/', '.') || 'it'
  if (keyword === 'required') return `${place === 'it' ? '' : `${place}.`}${params['missingProperty']} is missing`
  if (keyword === 'enum') return `${place} must be one of ${JSON.stringify(params['allowedValues'])}`
  if (keyword === 'additionalProperties') return `${place} has no ${JSON.stringify(params['additionalProperty'])}`
  return `${place} ${message}`
}
