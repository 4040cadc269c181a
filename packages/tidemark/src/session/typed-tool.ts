/**
 * `tool(…)` creates a tool whose `run` gets checked and typed input. The input is described by a JSON Schema, or by a
 * schema of a library that follows Standard Schema (zod, valibot, arktype and others).
 */
import { TidemarkError } from '@tidemark/core/errors'
import { isObject } from '@tidemark/core/log/json'
import type { Tool, ToolContext, ToolOutput } from './tools.ts'

/** The part of Standard Schema (standardschema.dev) that `tool` uses. */
interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] }

interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The input that `run` gets, inferred from the schema. */
type ToolInput<Schema> =
  Schema extends StandardSchema<unknown, infer Output> ? Output : FromJsonSchema<Schema>

/** The type of the values that a JSON Schema describes; `unknown` for what it does not cover. */
type FromJsonSchema<Schema> = Schema extends { readonly enum: readonly (infer Value)[] }
  ? Value
  : Schema extends { readonly const: infer Value }
    ? Value
    : Schema extends { readonly type: 'string' }
      ? string
      : Schema extends { readonly type: 'number' | 'integer' }
        ? number
        : Schema extends { readonly type: 'boolean' }
          ? boolean
          : Schema extends { readonly type: 'array'; readonly items: infer Item }
            ? readonly FromJsonSchema<Item>[]
            : Schema extends { readonly properties: infer Fields }
              ? FromFields<Fields, RequiredNames<Schema>>
              : unknown

type RequiredNames<Schema> = Schema extends { readonly required: readonly (infer Name)[] } ? Name : never

type FromFields<Fields, Required> = {
  readonly [Name in keyof Fields as Name extends Required ? Name : never]: FromJsonSchema<Fields[Name]>
} & {
  readonly [Name in keyof Fields as Name extends Required ? never : Name]?: FromJsonSchema<Fields[Name]>
}

interface TypedTool<Schema> {
  readonly description?: string
  /** The schema of the input: JSON Schema, or a Standard Schema. Default: an object without fields. */
  readonly input?: Schema
  /** The JSON Schema for the model, needed only if the library of `input` cannot give it. */
  readonly inputSchema?: object
  /** True if calls of this tool may run at the same time as other such calls. Default: false. */
  readonly parallel?: boolean
  readonly run: (input: ToolInput<Schema>, context: ToolContext) => ToolOutput | Promise<ToolOutput>
}

/**
 * Creates a tool for `session.run`. Throws `bad-option` if no JSON Schema can be had from the input's schema.
 *
 * @example tool({ description: 'Adds.', input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => `${a + b}` })
 */
export function tool<const Schema = { readonly type: 'object'; readonly properties: Record<never, never> }>(
  given: TypedTool<Schema>,
): Tool {
  if (!isObject(given) || typeof given.run !== 'function')
    throw badTool('tool: expected { description, input, run(input, { signal }) }.')
  const { description, input, inputSchema, parallel, run } = given
  const isStandard = isStandardSchema(input)
  return {
    ...(description === undefined ? {} : { description }),
    inputSchema: inputSchema ?? ((isStandard ? toJsonSchema(input) : (input ?? NO_INPUT)) as object),
    ...(parallel === undefined ? {} : { parallel }),
    run: isStandard
      ? async (value: never, context: ToolContext) =>
          runChecked(input, value, (checked) => run(checked as never, context))
      : (run as Tool['run']),
  }
}

const NO_INPUT = { type: 'object', properties: {} }

function isStandardSchema(schema: unknown): schema is StandardSchema {
  const isHolder = (typeof schema === 'object' && schema !== null) || typeof schema === 'function'
  const standard = isHolder ? (schema as Partial<StandardSchema>)['~standard'] : undefined
  return typeof standard?.validate === 'function'
}

/** Validates a value and runs the tool with it. An invalid value becomes an error result for the model. */
async function runChecked(
  schema: StandardSchema,
  value: unknown,
  run: (value: unknown) => ToolOutput | Promise<ToolOutput>,
): Promise<ToolOutput> {
  const checked = await schema['~standard'].validate(value)
  if (checked.issues === undefined) return run(checked.value)
  const problems = checked.issues.slice(0, MAX_ISSUES).map(describeIssue).join('; ')
  return {
    content: `The input does not fit, so the tool was not run: ${problems}. Call again with an input that fits.`,
    isError: true,
  }
}

const MAX_ISSUES = 8

function describeIssue({ message, path = [] }: Issue): string {
  const steps = path.map((step) => String(typeof step === 'object' ? step.key : step))
  return steps.length === 0 ? message : `${steps.join('.')}: ${message}`
}

/** The two ways in which libraries supply a JSON Schema: an extension of Standard Schema, or a method of the schema. */
interface JsonSchemaGiver {
  readonly toJSONSchema?: () => unknown
  readonly toJsonSchema?: () => unknown
}

function toJsonSchema(schema: StandardSchema): object {
  const standard = schema['~standard'] as StandardSchema['~standard'] & {
    readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown }
  }
  const giver = schema as StandardSchema & JsonSchemaGiver
  const given =
    standard.jsonSchema?.input?.({ target: 'draft-2020-12' }) ??
    giver.toJSONSchema?.() ??
    giver.toJsonSchema?.()
  if (!isObject(given))
    throw badTool(
      `tool: the schema library ${standard.vendor} gives no JSON Schema for this input. Give it as inputSchema too, or wrap the schema (valibot: toStandardJsonSchema of @valibot/to-json-schema).`,
    )
  const { $schema: _, '~standard': __, ...plain } = given as Record<string, unknown>
  return plain
}

function badTool(message: string): TidemarkError {
  return new TidemarkError('bad-option', message, { details: { option: 'tools' } })
}
