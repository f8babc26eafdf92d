/** JSON Schema, as far as requests use it. */
export interface Schema {
  type?: string | string[]
  enum?: readonly unknown[]
  const?: unknown
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  properties?: Record<string, Schema>
  required?: readonly string[]
  items?: Schema
  anyOf?: Schema[]
  description?: string
}

interface Operation {
  parameters: Array<{ name: string; in: string; schema?: Schema; required?: boolean }>
  requestBody?: { content: Record<string, { schema: Schema }> }
}

/** A field of a route: in its query (`?name`), or in its body, with the names that lead to it. */
export interface Field {
  route: string
  name: string
  path: readonly string[]
  schema: Schema
}

export interface Route {
  key: string
  method: string
  path: string
  query: Record<string, Schema>
  required: readonly string[]
  body: Schema | undefined
  /** The body is a form, which the route reads itself. */
  isForm: boolean
}

export function routesOf(paths: Record<string, Record<string, Operation>>): Route[] {
  return Object.entries(paths).flatMap(([path, operations]) => Object.entries(operations).map(([method, { parameters, requestBody }]) => {
    const inQuery = parameters.filter(({ in: place }) => place === 'query')
    const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
    return {
      key: `${method.toUpperCase()} ${path.slice('/api'.length)}`, method: method.toUpperCase(), path, body: content?.schema, isForm: type !== undefined && type !== 'application/json',
      query: Object.fromEntries(inQuery.map(({ name, schema }) => [name, schema ?? {}])), required: inQuery.filter(({ required }) => required).map(({ name }) => name),
    }
  }))
}

export function fieldsOf({ key: route, query, body }: Route): Field[] {
  const inQuery = Object.entries(query).map(([name, schema]) => ({ route, name: `?${name}`, path: [name], schema }))
  const inBody = [...new Map((body ? propertiesOf(body, []) : []).map((one) => [one.path.join('.'), one])).values()]
  return [...inQuery, ...inBody.map(({ path, schema }) => ({ route, name: path.join('.'), path, schema }))]
}

function propertiesOf(schema: Schema, at: readonly string[]): Array<{ path: readonly string[]; schema: Schema }> {
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => [{ path: [...at, name], schema: inner }, ...propertiesOf(inner, [...at, name])]),
    ...(schema.items ? propertiesOf(schema.items, at) : []),
    ...(schema.anyOf ?? []).flatMap((inner) => propertiesOf(inner, at)),
  ]
}

/** A value of a schema that is found again: its texts and numbers have `mark` in them. */
export function valueOf(schema: Schema, mark: number): unknown {
  const [type] = [schema.type ?? 'any'].flat()
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum.at(-1)
  if (schema.anyOf) return valueOf(schema.anyOf.find((one) => one.properties) ?? schema.anyOf[0] ?? {}, mark)
  if (schema.properties) {
    return Object.fromEntries(Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name)).map(([name, inner]) => [name, valueOf(inner, mark)]))
  }
  if (type === 'boolean') return true
  if (type === 'array') return [valueOf(schema.items ?? {}, mark)]
  if (type === 'object') return { [`mark${mark}`]: `mark${mark}` }
  if (type === 'integer' || type === 'number') return Math.min(Math.max(mark, schema.minimum ?? mark), schema.maximum ?? mark)
  if (schema.format === 'date-time') return new Date(Date.UTC(2_100, 0, 1) + mark).toISOString()
  return `mark${mark}`
}

/** A body with a value at a place; what leads there gets the fields that it needs. */
export function withField(body: unknown, schema: Schema, [name = '', ...rest]: readonly string[], value: unknown): unknown {
  const forms = [schema, ...(schema.anyOf ?? [])]
  const own = forms.find((one) => one.properties?.[name]) ?? forms.find((one) => one.items) ?? schema
  if (own.items) return [withField(Array.isArray(body) ? (body as unknown[])[0] : {}, own.items, [name, ...rest], value)]
  const inner = own.properties?.[name] ?? {}
  const base = { ...(valueOf({ properties: own.properties ?? {}, required: own.required ?? [] }, 0) as object), ...(isObject(body) ? body : {}) } as Record<string, unknown>
  return { ...base, [name]: rest.length === 0 ? value : withField(base[name], inner, rest, value) }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)
