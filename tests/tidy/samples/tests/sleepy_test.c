// A sample for tests/tidy/style: a test that sleeps.

TEST(sleeping)
{
    usleep(1);
}
