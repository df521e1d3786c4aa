// How a test in Python asks for one case of an SDK: `node sdk.mjs CASE '{"argument": 1}'`.
// What came of it is printed as JSON, {"value": ...} or {"error": {"class", "status", "message"}}.

export async function outcome(cases) {
  const [name, given] = process.argv.slice(2);
  let told;
  try {
    told = { value: (await cases[name](JSON.parse(given))) ?? null };
  } catch (error) {
    told = {
      error: {
        class: error.constructor.name,
        status: error.status ?? error.statusCode ?? null,
        message: error.message,
      },
    };
  }
  process.stdout.write(JSON.stringify(told));
}

export async function gathered(events) {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
}
