// The paper's hierarchical regression (section 7.3), non-centred.
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> county;
  matrix[N, 2] x;
  vector[N] y;
}
parameters {
  real mu_alpha;
  real mu_beta;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_beta;
  real<lower=0> epsilon;
  vector[J] alpha_raw;
  vector[2] beta_raw;
}
transformed parameters {
  vector[J] alpha = mu_alpha + sigma_alpha * alpha_raw;
  vector[2] beta = mu_beta + sigma_beta * beta_raw;
}
model {
  mu_alpha ~ std_normal();
  mu_beta ~ std_normal();
  sigma_alpha ~ cauchy(0, 2.5) T[0, ];
  sigma_beta ~ cauchy(0, 2.5) T[0, ];
  epsilon ~ cauchy(0, 2.5) T[0, ];
  alpha_raw ~ std_normal();
  beta_raw ~ std_normal();
  y ~ normal(alpha[county] + x * beta, epsilon);
}
