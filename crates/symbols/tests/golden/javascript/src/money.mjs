export const formatMoney = (amount, currency = 'EUR') => `${amount} ${roundUp(amount)}`;
export const double = amount => amount * 2;
export async function* rates(day) {}
function roundUp(amount) {
  function nested() {}
  return nested();
}
export const api = {
  get(path) {},
  post: async (path, body) => roundUp(body),
  retries: 3,
};
