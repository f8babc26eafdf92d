import type { RunResult } from '../run/output/run-result.ts'
import type { ToolCall, ToolResult } from '../run/step/step-result.ts'
import type { ToolArgs, ToolOutput, ToolsInput } from '../run/tools/tool-set.ts'
import type { InferOutput } from '../schema/schema.ts'
import type { AgentStream } from './stream.ts'

// `infer` keeps an agent of certain tools assignable to one of any tools.
type CallsOf<Tools> = Tools extends infer T ? { [Name in keyof T & string]: ToolCall<Name, ToolArgs<T[Name]>> }[keyof T & string] : never
type ResultsOf<Tools> = Tools extends infer T
  ? { [Name in keyof T & string]: ToolResult<Name, ToolArgs<T[Name]>, ToolOutput<T[Name]>> }[keyof T & string]
  : never
type ObjectFor<S> = [S] extends [never] ? undefined : InferOutput<S>

/** What `generate()` answers, typed by the agent's tools and by the schema that was asked for. */
export type GenerateResult<Tools extends ToolsInput, S> = RunResult<CallsOf<Tools>, ResultsOf<Tools>, ObjectFor<S>>
export type StreamResult<Tools extends ToolsInput, S> = AgentStream<CallsOf<Tools>, ResultsOf<Tools>, ObjectFor<S>>
